// The runner's gate: the README's two commands, then the proofs that are too slow for every change.
// Counts what passed, failed and was skipped, whatever ran it, and ends with one line of them.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./run.mjs";

const scratch = mkdtempSync(join(tmpdir(), "proc-safe-ci-"));
const env = { ...process.env, PROC_SAFE_NATIVE: "require", PROC_SAFE_CROSS: "require", FORCE_COLOR: "0" };
const VITEST = "node_modules/vitest/vitest.mjs";
const total = { passed: 0, failed: 0, skipped: 0 };

step("./dev list", ["./dev", "list"]);
step("the binaries of all targets", ["node", "scripts/cross.mjs", "--install-tools"]);
counted("each of them, executed", ["node", "scripts/execute.mjs", "--install-tools"]);
step("the package with all of them", ["node", "scripts/pack-check.mjs", "--all-targets"]);
step("lints of what only other targets compile", ["node", "scripts/cross.mjs", "--lint", "linux-arm64-musl", "darwin-x64", "win32-x64"]);
step("./dev test", ["./dev", "test"]);
step("./dev check", ["./dev", "check"]);
for (const model of ["linux_model", "darwin_model", "windows_model", "windows_commands"]) {
  const words = ["test", "--release", "--locked", "-p", "proc-safe-core", "--test", model];
  step(`random worlds: ${model}`, ["cargo", ...words], { PROC_SAFE_MODEL_CASES: "400000" });
}
step("one child from running to gone", ["node", "scripts/linux-census-proof.mjs"]);
counted("Windows processes under wine", ["node", "scripts/windows.mjs", "--install-tools"]);
counted("the package, installed", ["node", "scripts/package-smoke.mjs"]);
vitest("200,000 rows beside recyclers and executions", ["node"], ["test/recycle.test.ts", "test/inspect.test.ts"], { PROC_SAFE_ROWS: "200000" });
for (const version of [24, 26]) vitest(`Node ${version}`, ["npx", "-y", "-p", `node@${version}`, "node"], []);
// Our group and session are led from outside then, so they are no facts in there.
const inside = ["unshare", "--pid", "--fork", "--mount-proc"];
vitest("Node 22, in a pid namespace of its own", [...inside, "npx", "-y", "-p", "node@22", "node"], []);

rmSync(scratch, { recursive: true });
const skipped = total.skipped === 0 ? "" : `, ${total.skipped} skipped`;
process.stdout.write(`${total.passed} passed, ${total.failed} failed${skipped}\n`);
process.exit(total.failed === 0 ? 0 : 1);

/** A command that counts as one. */
function step(name, [command, ...words], more = {}) {
  announce(name);
  const { status } = spawnSync(command, words, { cwd: ROOT, env: { ...env, ...more }, stdio: ["ignore", "inherit", "inherit"] });
  if (status === 0) total.passed++;
  else total.failed++;
}

/** A command that ends with its counts. */
function counted(name, [command, ...words]) {
  announce(name);
  const { stdout, status } = spawnSync(command, words, { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" });
  process.stdout.write(stdout);
  const counts = /^(\d+) passed, (\d+) failed, (\d+) skipped$/m.exec(stdout)?.slice(1).map(Number) ?? [0, 1, 0];
  total.passed += counts[0];
  total.failed += status === 0 ? counts[1] : Math.max(counts[1], 1);
  total.skipped += counts[2];
}

/** A run of vitest, whose tests count one by one. */
function vitest(name, [command, ...words], files, more = {}) {
  announce(name);
  const report = join(scratch, "report.json");
  rmSync(report, { force: true });
  const options = ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const { status } = spawnSync(command, [...words, VITEST, ...options, ...files], {
    cwd: ROOT,
    env: { ...env, ...more },
    stdio: ["ignore", "inherit", "inherit"],
  });
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, "utf8"));
    total.passed += numPassedTests;
    total.failed += numFailedTests;
    total.skipped += numPendingTests; // PROC_SAFE_NATIVE=require lets skip only what no machine of this kind has
    if (status !== 0 && numFailedTests === 0) total.failed++;
  } catch (error) {
    process.stdout.write(`no report: ${error.message}\n`);
    total.failed++;
  }
}

function announce(name) {
  process.stdout.write(`\n=== ${name}\n`);
}
