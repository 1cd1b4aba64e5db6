// What every binary must answer on the system that it is for: `node conformance.mjs FOLDER TARGET` takes the package
// from FOLDER/node_modules, as a user's program there does, and prints one line of JSON. It needs nothing beside this
// file and a Node.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const onWindows = process.platform === "win32";
/** On Windows a child can outlive its parent; the first process of a container has none. */
const hasParent = !onWindows && process.ppid !== 0;
const [folder, target] = workerData ?? process.argv.slice(2);
const from = createRequire(join(folder, "program.js"));
const proc = await import(pathToFileURL(from.resolve("proc-safe")).href);
const { version } = from("proc-safe/package.json");

const CHECKS = {
  "the binary is the one for this system": () => {
    const status = proc.nativeStatus();
    assert.deepEqual([status.state, status.target, status.version, status.error], ["ready", target, version, undefined]);
    assert.equal(proc.isSupported(), true);
  },
  "the census is whole and in order, with this process and its parent": () => {
    const pids = proc.listProcesses().map(({ pid }) => pid);
    assert.deepEqual(pids, [...new Set(pids)].sort((a, b) => a - b));
    assert.ok(pids.includes(process.pid));
    if (hasParent) assert.ok(pids.includes(process.ppid));
  },
  "this process is running, ours, and has its true parent and birth": () => {
    const row = rowOf(process.pid);
    assert.deepEqual([row.owner, row.parentPid, row.state], ["same", process.ppid, "running"]);
    const age = Date.now() - row.identity.startTimeMicros / 1000;
    assert.ok(Math.abs(age - process.uptime() * 1000) < 30_000, `born ${age} ms ago`);
  },
  "one identity, however it is read": () => {
    const identity = proc.readProcessIdentity(process.pid);
    const copy = JSON.parse(JSON.stringify(identity));
    assert.equal(proc.compareIdentities(identity, copy), "same");
    assert.equal(proc.compareIdentities(rowOf(process.pid).identity, copy), "same");
    assert.equal(proc.inspectIdentity(copy), "live");
    assert.equal(proc.inspectIdentity({ ...copy, startTimeMicros: 1, startTimeSinceBootMicros: 1, uniqueId: "1" }), "reused");
  },
  "the chain above begins with this process and its parent": () => {
    const { chain } = proc.readProcessAncestry(process.pid, { maxDepth: 2 });
    assert.equal(chain[0].pid, process.pid);
    if (hasParent) assert.equal(chain[1].pid, process.ppid);
  },
  "a child from running to gone": async () => {
    const child = await start();
    const me = proc.readProcessIdentity(process.pid);
    const { owner, parentPid, identity } = rowOf(child.pid);
    assert.deepEqual([owner, parentPid, identity.exited], ["same", process.pid, false]);
    assert.equal(proc.compareIdentities(identity, me), "different");
    assert.ok(proc.descendantsOf(proc.listProcesses(), me).processes.some(({ pid }) => pid === child.pid));
    assert.equal(proc.inspectIdentity(identity), "live");
    await end(child);
    assert.ok((onWindows ? ["exited", "gone", "reused"] : ["gone", "reused"]).includes(proc.inspectIdentity(identity)));
    const later = proc.listProcesses().find(({ pid }) => pid === child.pid);
    assert.notEqual(later?.identity && proc.compareIdentities(later.identity, identity), "same");
  },
  "commands of this process and of a child": async () => {
    const own = proc.readProcessCommand(process.pid, { environmentKeys: ["PATH", "PROC_SAFE_NOT_SET"] });
    assert.deepEqual(own.argv.slice(-2), [folder, target]);
    assert.deepEqual(Object.values(own.environment), [process.env.PATH]); // Windows finds it under any case
    const child = await start();
    assert.deepEqual(proc.readProcessCommand(child.pid).argv, child.spawnargs);
    await end(child);
    assert.equal(proc.readProcessCommand(NOBODY), null);
  },
  "nobody is null, and no row": () => {
    assert.equal(proc.readProcessIdentity(NOBODY), null);
    assert.deepEqual(proc.listProcesses({ pids: [NOBODY] }), []);
  },
  "what is no pid is refused": () => {
    for (const pid of [-1, 1.5, "1", undefined, NaN, 2 ** 32]) {
      assert.throws(() => proc.readProcessIdentity(pid), { name: "ProcSafeError", code: "invalid-argument" });
      assert.throws(() => proc.listProcesses({ pids: [pid] }), { name: "ProcSafeError", code: "invalid-argument" });
    }
  },
  "a Worker sees the same": async () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: [folder, target] });
    const [[[status, pids, identity]], [code]] = await Promise.all([once(worker, "message"), once(worker, "exit")]);
    assert.deepEqual([code, status.state, status.target], [0, "ready", target]);
    assert.ok(pids.includes(process.pid));
    assert.equal(proc.compareIdentities(identity, proc.readProcessIdentity(process.pid)), "same");
  },
};

/** Larger than any pid of Linux and macOS, and not a multiple of 4 as those of Windows are. */
const NOBODY = 2 ** 31 - 1;

if (isMainThread) process.exitCode = await proveAll();
else parentPort.postMessage([proc.nativeStatus(), proc.listProcesses().map(({ pid }) => pid), proc.readProcessIdentity(process.pid)]);

async function proveAll() {
  const checks = [];
  for (const [name, check] of Object.entries(CHECKS)) {
    const error = await Promise.resolve().then(check).then(() => undefined, (thrown) => thrown);
    checks.push({ name, ...(error !== undefined && { error: error.stack }) });
  }
  const failed = checks.filter(({ error }) => error !== undefined).length;
  const { platform, arch, version: node } = process;
  const proof = { target, version, node, platform, arch, passed: checks.length - failed, failed, checks };
  process.stdout.write(`${JSON.stringify(proof)}\n`);
  return failed === 0 ? 0 : 1;
}

function rowOf(pid) {
  const rows = proc.listProcesses({ pids: [pid] });
  assert.equal(rows.length, 1);
  return rows[0];
}

/** A process that waits until it is ended, or for five minutes. */
async function start() {
  const wait = ["-e", "setTimeout(() => {}, 300_000)"];
  const child = onWindows ? spawn(process.execPath, wait, { stdio: "ignore" }) : spawn("sleep", ["300"], { stdio: "ignore" });
  await once(child, "spawn");
  child.unref(); // a check that fails does not end it
  process.once("exit", () => child.kill("SIGKILL"));
  return child;
}

async function end(child) {
  child.ref();
  child.kill("SIGKILL");
  await once(child, "exit");
}
