// A panic in Rust becomes an error of the call: the host lives and its console stays clean.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runScript } from "./support/node.ts";
import { ROOT } from "./support/paths.ts";

const TARGET = join(ROOT, "target/test-faults");
const LIBRARY = {
  darwin: "libproc_safe_addon.dylib",
  win32: "proc_safe_addon.dll",
}[process.platform as string] ?? "libproc_safe_addon.so";

test("a panic is operation-failed, on the main thread and in a Worker, and says nothing on the console", () => {
  execFileSync(
    "cargo",
    ["build", "--quiet", "--locked", "-p", "proc-safe-addon", "--features", "test-faults", "--target-dir", TARGET],
    { cwd: ROOT, stdio: "inherit" },
  );
  const library = JSON.stringify(join(TARGET, "debug", LIBRARY));
  const native = JSON.stringify(new URL("../dist/native.js", import.meta.url).href);
  const panicking = `
    const { unwrap } = await import(${native});
    const module = { exports: {} };
    process.dlopen(module, ${library});
    const call = () => { try { unwrap(module.exports.panicNow()); } catch (error) { return [error.name, error.code, error.details.reason]; } };
    const outcome = [call(), call(), typeof module.exports.describeBinding().version];
  `;
  const worker = `
    import { parentPort } from "node:worker_threads";
    ${panicking}
    parentPort.postMessage(outcome);
  `;
  const run = runScript(`
    import { Worker } from "node:worker_threads";
    ${panicking}
    const there = await new Promise((resolve, reject) => {
      new Worker(${JSON.stringify(worker)}, { eval: true }).once("message", resolve).once("error", reject);
    });
    report({ here: outcome, there });
  `);
  const panic = ["ProcSafeError", "operation-failed", "panic"];
  expect(run).toEqual({
    value: { here: [panic, panic, "string"], there: [panic, panic, "string"] },
    status: 0,
    stderr: "",
  });
});
