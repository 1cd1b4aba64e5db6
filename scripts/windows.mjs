// Runs test/windows on real processes: on Windows as it is, on Debian under wine with the real node.exe, which
// `--install-tools` installs (as root). It builds first, ends with one line of counts, and bounds every step.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildNative, buildTypeScript } from "./build.mjs";
import { fail, ROOT, run } from "./run.mjs";
import { MINGW } from "./targets.mjs";
import { compile, installWine, startWine, windowsPath } from "./wine.mjs";

const MINUTE = 60_000;
const onWindows = process.platform === "win32";

const words = process.argv.slice(2);
if (words.some((word) => word !== "--install-tools")) fail("usage: node scripts/windows.mjs [--install-tools]");
if (words.length > 0 && !onWindows) installWine();

const scratch = mkdtempSync(join(tmpdir(), "proc-safe-windows-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));
const report = join(scratch, "report.tap");
process.exitCode = count(report, onWindows ? await testHere(report) : testUnderWine(report));

async function testHere(report) {
  buildTypeScript();
  await buildNative();
  const states = join(scratch, "states.exe");
  compile("gcc", "test/windows/states.c", states);
  const test = join(ROOT, "test/windows/all.mjs");
  const env = { ...process.env, PROC_SAFE_STATES: states, PROC_SAFE_NATIVE: "require" };
  const options = { cwd: ROOT, env, stdio: ["ignore", "inherit", "inherit"], timeout: 5 * MINUTE };
  return spawnSync(process.execPath, [...reporters(report, "stdout"), test], options).status;
}

function testUnderWine(report) {
  buildTypeScript();
  run(process.execPath, ["scripts/cross.mjs", "win32-x64"]);
  const states = join(scratch, "states.exe");
  const { node, said } = startWine(scratch, { PROC_SAFE_STATES: windowsPath(states) });
  compile(MINGW, "test/windows/states.c", states);
  const shown = join(scratch, "report.txt");
  const test = windowsPath(join(ROOT, "test/windows/all.mjs"));
  const status = node([...reporters(windowsPath(report), windowsPath(shown)), test]);
  const texts = status === 0 ? [shown] : [shown, said];
  for (const text of texts.filter(existsSync)) process.stdout.write(readFileSync(text, "utf8"));
  return status;
}

/** One for people, one to count. */
function reporters(report, shown) {
  return ["spec", shown, "tap", report].map((word, index) => `--test-reporter${index % 2 === 1 ? "-destination" : ""}=${word}`);
}

/** Prints the counts; the exit status. A run that did not end, or ran nothing, has failed. */
function count(report, status) {
  const text = existsSync(report) ? readFileSync(report, "utf8") : "";
  const number = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  const [passed, skipped] = [number("pass"), number("skipped")];
  const broken = status !== 0 || passed === 0 ? 1 : 0;
  const failed = Math.max(number("fail") + number("cancelled"), broken);
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  return failed === 0 ? 0 : 1;
}
