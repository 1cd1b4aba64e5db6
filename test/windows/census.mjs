// A census of real Windows processes. Its last test ends the program of the states.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { CLI, DIST, first, look, only, runModule, runNode, states, still, throwsCode } from "./support.mjs";

const {
  buildForest,
  compareIdentities,
  descendantsOf,
  findTree,
  inspectIdentity,
  isSupported,
  listProcesses,
  nativeStatus,
  readBootIdentity,
  readProcessAncestry,
  readProcessIdentity,
} = await import(DIST);

test("the binding is ready", () => {
  const { state, target, version } = nativeStatus();
  assert.deepEqual([state, target, isSupported()], ["ready", "win32-x64", true]);
  assert.match(version, /^\d+\.\d+\.\d+$/);
});

test("the caller's own row", () => {
  const row = only(process.pid);
  assert.deepEqual(Object.keys(row), ["pid", "owner", "parentPid", "name", "state", "identity"]);
  assert.deepEqual([row.pid, row.owner, row.parentPid, row.state], [process.pid, "same", process.ppid, "running"]);
  assert.equal(row.name.toLowerCase(), "node.exe");
  const { startTimeMicros, ...rest } = row.identity;
  assert.deepEqual(rest, { pid: process.pid, parentPid: process.ppid, startTimeResolutionMicros: 1, exited: false });
  const age = Date.now() - startTimeMicros / 1000;
  assert.ok(age >= process.uptime() * 1000 - 1000 && age < process.uptime() * 1000 + 30_000, `${age}`);
});

test("a full census is sorted, frozen, plain data and holds the caller", () => {
  const rows = listProcesses();
  assert.deepEqual(rows.map(({ pid }) => pid), rows.map(({ pid }) => pid).toSorted((a, b) => a - b));
  assert.equal(new Set(rows.map(({ pid }) => pid)).size, rows.length);
  assert.ok(rows.some(({ pid }) => pid === process.pid));
  for (const row of rows) {
    assert.ok(Object.isFrozen(row) && Object.getPrototypeOf(row) === Object.prototype);
    assert.ok(!("uid" in row) && !("processGroupId" in row) && !("sessionId" in row));
    if (row.identity) assert.equal(row.parentPid, row.identity.parentPid);
  }
  assert.deepEqual(structuredClone(rows), rows);
  assert.deepEqual(listProcesses({ visibility: "visible" }).find(({ pid }) => pid === process.pid), only(process.pid));
});

test("a child has its parent, a birth after it, and one identity however it is read", async () => {
  const row = await still(() => only(first.child));
  assert.deepEqual([row.owner, row.parentPid, row.state], ["same", first.self, "running"]);
  assert.equal(row.name, "states.exe");
  assert.deepEqual(readProcessIdentity(first.child), row.identity);
  assert.ok(only(first.self).identity.startTimeMicros <= row.identity.startTimeMicros);
  assert.equal(compareIdentities(row.identity, JSON.parse(JSON.stringify(row.identity))), "same");
  assert.equal(compareIdentities(row.identity, only(first.self).identity), "different");
  assert.equal(inspectIdentity(row.identity), "live");
});

test("a suspended process is stopped", async (t) => {
  const row = await still(() => only(first.suspended));
  assert.deepEqual([row.owner, row.parentPid], ["same", first.self]);
  assert.equal(inspectIdentity(row.identity), "live");
  if (first.wine) return t.skip("wine tells no thread states");
  assert.equal(row.state, "stopped");
});

test("a process that has exited while a handle is open is a zombie", async () => {
  const [row, identity] = await still(() => [only(first.ended), readProcessIdentity(first.ended)]);
  assert.deepEqual([row.state, row.parentPid, row.exiting], ["zombie", first.self, undefined]);
  assert.ok(row.owner === "same" || (row.owner === "unknown" && !first.wine)); // its token may be gone
  assert.equal(identity.exited, true);
  assert.deepEqual(row.identity, identity);
  assert.equal(inspectIdentity(identity), "exited");
  const listed = listProcesses().find(({ pid }) => pid === first.ended);
  assert.ok(listed === undefined || listed.state === "zombie");
});

test("a process that may not be opened keeps all but its owner", async (t) => {
  const [said, row, identity] = [await look(""), only(first.refused), readProcessIdentity(first.refused)];
  if (!said.isRefused) return t.skip("this user may open every process");
  assert.deepEqual([row.owner, row.parentPid, row.state], ["unknown", first.self, "running"]);
  assert.deepEqual(row.identity, identity);
  assert.equal(inspectIdentity(identity), "live");
});

test("descendants and trees", async () => {
  const root = readProcessIdentity(first.self);
  const { processes, gap } = await still(() => descendantsOf(listProcesses(), root));
  const found = processes.map(({ pid }) => pid);
  for (const pid of [first.child, first.suspended, first.refused]) assert.ok(found.includes(pid), `${pid}`);
  assert.ok(!found.includes(process.pid));
  assert.ok(gap === undefined || gap === "undecided");
  const tree = findTree(buildForest(listProcesses()), first.self);
  assert.ok(tree.children.some(({ row }) => row.pid === first.child));
});

test("ancestors", async () => {
  const { chain, stoppedBy } = await still(() => readProcessAncestry(first.child, { throughPid: process.pid }));
  assert.deepEqual(chain.map(({ pid }) => pid), [first.child, first.self, process.pid]);
  assert.equal(stoppedBy, "through-pid");
  assert.equal(readProcessAncestry(process.pid).complete, true);
});

test("an orphan keeps the pid of its parent, which is no edge once another has it", async (t) => {
  const { orphan, orphansParent } = await look("");
  const row = only(orphan);
  assert.deepEqual([row.parentPid, row.identity.parentPid], [orphansParent, orphansParent]);
  const parent = readProcessIdentity(orphansParent);
  const before = readProcessAncestry(orphan);
  // A handle somewhere may keep the parent's object.
  if (parent === null) assert.deepEqual([before.chain.length, before.stoppedBy], [1, "missing-parent"]);
  else assert.deepEqual([before.chain[1].exited, before.chain[1].pid], [true, orphansParent]);

  const { recycled } = await look(`recycle ${orphansParent}`);
  if (recycled === 0 && !first.wine) return t.skip("the pid did not come again");
  assert.equal(recycled, orphansParent);
  assert.equal(readProcessIdentity(recycled).exited, false);
  if (parent !== null) assert.equal(inspectIdentity(parent), "reused");
  const { chain, stoppedBy, complete } = readProcessAncestry(orphan);
  assert.deepEqual([chain.length, stoppedBy, complete], [1, "recycled-parent", true]);
  assert.equal(only(orphan).parentPid, recycled);
  const forest = buildForest(listProcesses());
  assert.ok(forest.some((tree) => tree.row.pid === orphan), "the orphan is the top of a tree");
  const stranger = findTree(forest, recycled);
  assert.deepEqual(stranger.children, []);
  return undefined;
});

test("what no process has is absent", () => {
  for (const pid of [2 ** 32 - 1, 2 ** 31, process.pid + 1, process.pid + 2, process.pid + 3]) {
    assert.equal(readProcessIdentity(pid), null, `${pid}`);
    assert.equal(only(pid), undefined, `${pid}`);
  }
  assert.deepEqual(listProcesses({ pids: [] }), []);
  assert.equal(readProcessAncestry(2 ** 32 - 1), null);
});

test("the idle process and the system", (t) => {
  if (first.wine) {
    assert.deepEqual([only(0), readProcessIdentity(0)], [undefined, null]);
    return t.skip("wine has neither");
  }
  assert.deepEqual([only(0).owner, only(0).parentPid], ["unknown", 0]);
  assert.equal(only(4).parentPid, 0);
  assert.equal(only(4).name, "System");
  return undefined;
});

test("wrong arguments", () => {
  for (const pid of [-1, 1.5, NaN, 2 ** 32, "1", undefined, null, 1n]) {
    throwsCode("invalid-argument", () => readProcessIdentity(pid));
    throwsCode("invalid-argument", () => listProcesses({ pids: [pid] }));
  }
  for (const options of [null, 1, [], { pids: 1 }, { timeoutMs: 0 }, { timeoutMs: Infinity }, { visibility: "some" }, { other: 1 }]) {
    throwsCode("invalid-argument", () => listProcesses(options));
  }
  throwsCode("timeout", () => listProcesses({ timeoutMs: 1e-9 }));
  throwsCode("unsupported-platform", () => readBootIdentity());
});

test("children of Node's, from birth to absence", async () => {
  const child = spawn(process.env.PROC_SAFE_STATES, ["wait"], { stdio: "ignore" });
  const identity = readProcessIdentity(child.pid);
  assert.deepEqual([identity.parentPid, inspectIdentity(identity)], [process.pid, "live"]);
  child.kill();
  await once(child, "exit");
  const after = inspectIdentity(identity);
  assert.ok(["exited", "gone"].includes(after), after); // Node closes its handle when it likes
});

test("16 Workers at once, and Workers that are terminated during a census", async () => {
  const body = (loop) => `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(DIST)}).then(({ listProcesses, readProcessIdentity }) => {
      const look = () => listProcesses().filter((row) => row.pid === ${process.pid}).length + (readProcessIdentity(${process.pid}) ? 1 : 0);
      let seen = 0;
      for (let i = 0; i < 5; i++) seen += look();
      parentPort.postMessage(seen);
      ${loop ? "for (;;) look();" : ""}
    });`;
  const start = async (loop) => {
    const worker = new Worker(body(loop), { eval: true });
    const [seen] = await once(worker, "message");
    assert.equal(seen, 10);
    return worker;
  };
  await Promise.all(Array.from({ length: 16 }, () => start(false)));
  for (let round = 0; round < 3; round++) {
    const workers = await Promise.all(Array.from({ length: 4 }, () => start(true)));
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  assert.ok(listProcesses().some((row) => row.pid === process.pid));
});

test("PROC_SAFE_NATIVE", () => {
  const body = `
    const { listProcesses, nativeStatus } = await import(${JSON.stringify(DIST)});
    let code; try { listProcesses(); } catch (error) { code = error.code; }
    console.log(JSON.stringify([nativeStatus().mode, nativeStatus().state, code ?? "none"]));`;
  const ask = (mode) => JSON.parse(runModule(body, { PROC_SAFE_NATIVE: mode }).stdout);
  assert.deepEqual(ask("require"), ["require", "ready", "none"]);
  assert.deepEqual(ask("off"), ["off", "disabled", "helper-unavailable"]);
  assert.deepEqual(ask("other"), ["invalid", "unavailable", "invalid-argument"]);
});

test("the command line", async () => {
  const status = runNode([CLI, "status", "--json"]);
  assert.deepEqual([status.status, JSON.parse(status.stdout).state], [0, "ready"]);
  const one = await still(() => runNode([CLI, "list", "--pid", `${first.child}`, "--json"]));
  assert.deepEqual([one.status, JSON.parse(one.stdout)], [0, [only(first.child)]]);
  const all = runNode([CLI, "list"]);
  assert.equal(all.status, 0);
  assert.match(all.stdout, /^ *PID +PPID +PGID .*NAME\r?\n/);
  assert.match(all.stdout, new RegExp(`^ *${first.child} .*states\\.exe`, "m"));
  const tree = runNode([CLI, "tree", `${first.self}`]);
  assert.equal(tree.status, 0);
  assert.match(tree.stdout, new RegExp(`^ *${first.child} .*states\\.exe`, "m"));
  const identity = runNode([CLI, "identity", `${first.child}`, "--json"]);
  assert.deepEqual([identity.status, JSON.parse(identity.stdout)], [0, readProcessIdentity(first.child)]);
  assert.equal(runNode([CLI, "identity", "4294967295"]).status, 1);
  assert.equal(runNode([CLI, "identity", "no"]).status, 2);
  assert.equal(runNode([CLI, "list"], { PROC_SAFE_NATIVE: "off" }).status, 3);
});

test("processes that come and go do not disturb a census", async () => {
  const own = readProcessIdentity(process.pid);
  for (let round = 0; round < 20; round++) {
    const children = Array.from({ length: 5 }, () => spawn(process.env.PROC_SAFE_STATES, ["end"], { stdio: "ignore" }));
    const ends = children.map((child) => once(child, "exit"));
    for (let censuses = 0; censuses < 3; censuses++) {
      const rows = listProcesses();
      assert.deepEqual(rows.find(({ pid }) => pid === process.pid).identity, own);
      for (const row of rows.filter(({ pid }) => children.some((child) => child.pid === pid))) {
        assert.ok(row.identity === undefined || row.parentPid === process.pid, JSON.stringify(row));
      }
    }
    await Promise.all(ends);
  }
});

test("with the program of the states its processes end", async () => {
  const saved = [first.child, first.suspended, first.orphan].map((pid) => readProcessIdentity(pid));
  states.stdin.end();
  await once(states, "exit");
  // The end of a job is asked for, not waited for.
  const deadline = Date.now() + 10_000;
  while (saved.some((identity) => inspectIdentity(identity) === "live")) assert.ok(Date.now() < deadline);
  for (const identity of saved) assert.ok(["gone", "exited", "reused"].includes(inspectIdentity(identity)));
});
