// Prints, as JSON for a bug report, what this Mac answers where only XNU's sources could be read, and what the
// package makes of the same host meanwhile: `node scripts/darwin-probe.mjs [SECONDS]`, by default 60. Needs the
// command line tools and the built package (`pnpm build`).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { release } from "node:os";
import { text } from "node:stream/consumers";
import { setImmediate as breathe } from "node:timers/promises";
import { listProcesses, nativeStatus } from "proc-safe";
import { compileFixture } from "./fixtures.mjs";
import { fail } from "./run.mjs";

if (process.platform !== "darwin") fail("this probe is for macOS");
const seconds = Number(process.argv[2] ?? 60);
if (!(seconds > 0)) fail("SECONDS is a number above 0");

const probe = spawn(compileFixture("darwin-probe"), [String(seconds)], { stdio: ["ignore", "pipe", "inherit"] });
const ended = once(probe, "close");
const answers = text(probe.stdout);
const ours = await takeCensusesWhile(() => probe.exitCode === null && probe.signalCode === null);
const [status] = await ended;
if (status !== 0) fail(`the probe ended with ${status}`);
const host = { kernel: release(), arch: process.arch, node: process.version, uid: process.getuid(), binding: nativeStatus() };
process.stdout.write(`${JSON.stringify({ host, ours, kernel: JSON.parse(await answers) }, null, 2)}\n`);

async function takeCensusesWhile(goesOn) {
  const seen = { censuses: 0, rows: 0, bare: 0, exiting: 0, zombie: 0, withoutIdentity: 0, failures: {} };
  while (goesOn()) {
    try {
      const rows = listProcesses();
      seen.censuses++;
      seen.rows += rows.length;
      for (const row of rows) {
        if (row.parentPid === undefined) seen.bare++;
        else if (row.identity === undefined) seen.withoutIdentity++;
        if (row.exiting) seen.exiting++;
        if (row.state === "zombie") seen.zombie++;
      }
    } catch (error) {
      seen.failures[error.code] = (seen.failures[error.code] ?? 0) + 1;
    }
    await breathe();
  }
  return seen;
}
