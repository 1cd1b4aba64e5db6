// The package as it is shipped, and the program of the states, for the tests beside this file.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const DIST = new URL("../../dist/index.js", import.meta.url).href;
export const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
const { listProcesses, ProcSafeError } = await import(DIST);

export const scratch = mkdtempSync(join(tmpdir(), "proc-safe-windows-"));
export const states = spawn(process.env.PROC_SAFE_STATES, [], { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: states.stdout })[Symbol.asyncIterator]();
export const first = await look();
after(() => {
  states.kill();
  rmSync(scratch, { recursive: true, force: true });
});

/** What the program says of its processes, proved by it at this moment. */
export async function look(command) {
  if (command !== undefined) states.stdin.write(`${command}\n`);
  const { value, done } = await lines.next();
  assert.ok(!done, "the program of the states has ended");
  const said = JSON.parse(value);
  assert.deepEqual([said.childEnded, said.endedEnded], [0, 1]);
  assert.ok(said.suspensions > 0);
  return said;
}

/** The condition held before and after what is looked at. */
export async function still(read) {
  await look("");
  const value = read();
  await look("");
  return value;
}

export const only = (pid) => {
  const rows = listProcesses({ pids: [pid] });
  assert.ok(rows.length <= 1);
  return rows[0];
};
export const throwsCode = (code, call) => {
  assert.throws(call, (error) => error instanceof ProcSafeError && error.code === code && error.details?.errno === undefined);
};

/** Node on a script or the command line; a pipe for standard output ends Node's start under wine. */
export function runNode(words, env = {}) {
  const paths = ["out", "err"].map((name) => join(scratch, name));
  const files = paths.map((path) => openSync(path, "w"));
  const options = { stdio: ["ignore", ...files], env: { ...process.env, ...env }, timeout: 60_000 };
  const { status } = spawnSync(process.execPath, words, options);
  for (const file of files) closeSync(file);
  const [stdout, stderr] = paths.map((path) => readFileSync(path, "utf8"));
  return { status, stdout, stderr };
}

export function runModule(body, env) {
  const script = join(scratch, "script.mjs");
  writeFileSync(script, `import { writeFileSync } from "node:fs";\n${body}`);
  return runNode([script], env);
}
