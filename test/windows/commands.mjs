// What Windows processes run: read from real ones. What a command line means is compared with what Node, which
// Microsoft's C run time has given its arguments, made of it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, parse, win32 } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { DIST, first, look, only, scratch, still, throwsCode } from "./support.mjs";

const { inspectIdentity, listProcesses, readProcessCommand, readProcessIdentity } = await import(DIST);

const STATES = process.env.PROC_SAFE_STATES;
const samePath = (a, b) => assert.equal(win32.normalize(a).toLowerCase(), win32.normalize(b).toLowerCase());

/** By the single read, and by a census, which says the same. */
function commandOf(pid, environmentKeys = []) {
  const command = readProcessCommand(pid, { environmentKeys });
  const [row] = listProcesses({ pids: [pid], includeCommand: true, environmentKeys });
  assert.deepEqual(row?.command ?? null, command);
  return command;
}

/** A process that lives while it is looked at. */
async function whileRunning(program, words, options, look) {
  const child = spawn(program, words, { stdio: "ignore", ...options });
  const ended = once(child, "exit");
  try {
    const identity = readProcessIdentity(child.pid);
    await look(child.pid);
    assert.equal(inspectIdentity(identity), "live");
  } finally {
    child.kill();
    await ended;
  }
}

// As a file, because a pipe for standard output ends Node's start under wine; renamed, so that it is whole.
const TELL = join(scratch, "tell.mjs");
writeFileSync(TELL, `
  import { renameSync, writeFileSync } from "node:fs";
  const { PROC_SAFE_TOLD: path } = process.env;
  if (process.env.PROC_SAFE_MOVE) {
    process.env.PROC_SAFE_ADDED = "added ä";
    delete process.env.PROC_SAFE_REMOVED;
    process.chdir(process.env.PROC_SAFE_MOVE);
  }
  writeFileSync(path + ".part", JSON.stringify([process.argv0, ...process.argv.slice(2)]));
  renameSync(path + ".part", path);
  setInterval(() => {}, 1e6);`);

let told = 0;

/** Node with this text behind the name of its script; what it says its arguments are. */
async function whileNodeRuns(text, env, look) {
  const path = join(scratch, `told-${++told}`);
  const options = { windowsVerbatimArguments: true, env: { ...process.env, ...env, PROC_SAFE_TOLD: path } };
  await whileRunning(process.execPath, [`"${TELL}"`, text], options, async (pid) => {
    const deadline = Date.now() + 60_000;
    while (!existsSync(path)) {
      assert.ok(Date.now() < deadline, "Node has not started");
      await sleep(20);
    }
    await look(pid, JSON.parse(readFileSync(path, "utf8")));
  });
}

test("our own command, and only the variables that were asked for", () => {
  const command = commandOf(process.pid, ["PROC_SAFE_STATES", "proc_safe_native", "NO_SUCH_VARIABLE", "PROC_SAFE_STATES"]);
  samePath(command.executable, process.execPath);
  assert.equal(command.argv[0], process.argv0);
  assert.deepEqual(command.argv.slice(1, 1 + process.execArgv.length), process.execArgv);
  samePath(command.argv.at(-1), process.argv.at(-1));
  assert.ok(command.commandLine.length > command.argv.join("").length);
  samePath(command.cwd, process.cwd());
  assert.deepEqual(command.environment, { PROC_SAFE_STATES: STATES, proc_safe_native: process.env.PROC_SAFE_NATIVE });
  assert.deepEqual(commandOf(process.pid).environment, {});
  assert.deepEqual(Object.keys(commandOf(process.pid)), ["executable", "argv", "commandLine", "cwd", "environment"]);
});

test("a command is frozen plain data", () => {
  const command = commandOf(process.pid, ["PATH"]);
  for (const part of [command, command.argv, command.environment]) assert.ok(Object.isFrozen(part));
  assert.deepEqual(structuredClone(command), command);
});

test("arguments come back as they were given", async () => {
  const words = ["", "a b", "", 'say "no"', "back\\slash\\", "C:\\dir with blank\\", "tab\there", "ä€😀", "--", "^%PATH%&|", ""];
  await whileRunning(STATES, ["wait", ...words], {}, (pid) => {
    const { argv, executable } = commandOf(pid);
    assert.deepEqual(argv.slice(1), ["wait", ...words]);
    samePath(executable, STATES);
  });
});

test("arguments as long as a command line can be", async () => {
  const long = "ä€".repeat(8000) + "x".repeat(16_000);
  await whileRunning(STATES, ["wait", long], {}, (pid) => assert.deepEqual(commandOf(pid).argv.slice(1), ["wait", long]));
});

/** Texts of what can make a difference, the same in every run. */
function oddLines(count) {
  let state = 20260101;
  const next = (below) => (state = (state * 1103515245 + 12345) % 2 ** 31, Math.floor((state / 2 ** 31) * below));
  const unit = () => ["a", " ", "\t", '"', "\\", '"', "\\", '\\"', '""', "ä"][next(10)];
  return Array.from({ length: count }, () => Array.from({ length: 40 }, unit).join(""));
}

const LINES = [
  String.raw`"a b c" d e`,
  String.raw`"ab\"c" "\\" d a\\\b d"e f"g h a\\\"b c d a\\\\"b c" d e`,
  String.raw`a"b"" c d "" """ a b" """" """"" c`,
  String.raw`"open a\\`,
  ...oddLines(6),
];

for (const line of LINES) {
  test(`the C run time agrees on ${line}`, () =>
    whileNodeRuns(line, {}, (pid, [argv0, ...words]) => {
      const { argv, commandLine } = commandOf(pid);
      assert.deepEqual([argv[0], ...argv.slice(2)], [argv0, ...words]);
      assert.ok(commandLine.endsWith(` ${line}`), commandLine);
    }));
}

test("the working directory", async () => {
  const directory = join(scratch, "dir ä€");
  mkdirSync(directory);
  for (const cwd of [directory, parse(process.env.SYSTEMROOT ?? "C:\\windows").root]) {
    await whileRunning(STATES, ["wait"], { cwd }, (pid) => samePath(commandOf(pid).cwd, cwd));
  }
});

test("directory and variables are those that the process has now", async () => {
  const moved = join(scratch, "moved");
  mkdirSync(moved);
  const env = { PROC_SAFE_MOVE: moved, PROC_SAFE_REMOVED: "x", PROC_SAFE_EMPTY: "" };
  await whileNodeRuns("", env, (pid) => {
    const keys = ["PROC_SAFE_MOVE", "PROC_SAFE_ADDED", "PROC_SAFE_REMOVED", "PROC_SAFE_EMPTY", "__proto__"];
    const { cwd, environment } = commandOf(pid, keys);
    samePath(cwd, moved);
    const { PROC_SAFE_EMPTY: empty = "", ...rest } = environment;
    assert.deepEqual([empty, rest], ["", { PROC_SAFE_MOVE: moved, PROC_SAFE_ADDED: "added ä" }]);
  });
});

test("null: exited under an open handle, gone, no process's", async () => {
  const [alone, row] = await still(() => [
    readProcessCommand(first.ended, { environmentKeys: ["PATH"] }),
    listProcesses({ pids: [first.ended], includeCommand: true })[0],
  ]);
  assert.deepEqual([alone, row.state, "command" in row], [null, "zombie", false]);
  for (const pid of [2 ** 32 - 1, process.pid + 1, process.pid + 2, process.pid + 3]) {
    assert.equal(readProcessCommand(pid), null, `${pid}`);
  }
  const child = spawn(STATES, ["end"], { stdio: "ignore" });
  await once(child, "exit");
  assert.equal(readProcessCommand(child.pid), null);
});

test("a suspended process has a command", async () => {
  const command = await still(() => commandOf(first.suspended));
  assert.deepEqual(command.argv.slice(1), ["wait"]);
});

test("a process that may not be opened refuses, and its row stays", async (t) => {
  const { isRefused } = await look("");
  if (!isRefused) return t.skip("this user may open every process");
  throwsCode("access-denied", () => readProcessCommand(first.refused));
  const [row] = listProcesses({ pids: [first.refused], includeCommand: true });
  assert.deepEqual(row, only(first.refused));
  assert.ok(listProcesses({ includeCommand: true }).some(({ pid }) => pid === first.refused));
});

test("where memory may not be read, the kernel tells line and program", async (t) => {
  const { isClosed } = await look("");
  if (!isClosed) return t.skip("this user may read every process");
  throwsCode("access-denied", () => readProcessCommand(first.closed, { environmentKeys: ["PATH"] }));
  const [row] = listProcesses({ pids: [first.closed], includeCommand: true, environmentKeys: ["PATH"] });
  assert.deepEqual(row, only(first.closed));
  if (first.wine) {
    throwsCode("access-denied", () => readProcessCommand(first.closed));
    return t.skip("wine has the command line in memory alone");
  }
  const command = commandOf(first.closed);
  assert.deepEqual([command.argv.slice(1), command.cwd], [["wait"], undefined]);
  samePath(command.executable, STATES);
  return undefined;
});

test("a census with commands is whole, and says of each what a single read says", async () => {
  const rows = await still(() => listProcesses({ includeCommand: true }));
  const pids = rows.map(({ pid }) => pid);
  for (const pid of [process.pid, first.self, first.child, first.refused]) assert.ok(pids.includes(pid), `${pid}`);
  for (const pid of [process.pid, first.self, first.child]) {
    assert.deepEqual(rows.find((row) => row.pid === pid).command, readProcessCommand(pid));
  }
});

test("wrong options, and no time", () => {
  for (const options of [{ environmentKeys: ["A=B"] }, { environmentKeys: [""] }, { environmentKeys: "A" }, { timeoutMs: 0 }]) {
    throwsCode("invalid-argument", () => readProcessCommand(process.pid, options));
  }
  throwsCode("invalid-argument", () => readProcessCommand(-1));
  throwsCode("timeout", () => readProcessCommand(process.pid, { timeoutMs: 1e-9 }));
});

test("commands of processes that come and go are their own", async () => {
  let seen = 0;
  for (let round = 0; round < 10; round++) {
    const children = Array.from({ length: 4 }, (_, index) => spawn(STATES, ["end", `${round}.${index}`], { stdio: "ignore" }));
    const ends = children.map((child) => once(child, "exit"));
    for (let censuses = 0; censuses < 3; censuses++) {
      const rows = listProcesses({ includeCommand: true });
      assert.deepEqual(rows.find(({ pid }) => pid === process.pid).command, readProcessCommand(process.pid));
      for (const [index, { pid }] of children.entries()) {
        const row = rows.find((one) => one.pid === pid);
        if (row?.command === undefined) continue;
        seen += 1;
        assert.deepEqual(row.command.argv.slice(1), ["end", `${round}.${index}`]);
      }
    }
    await Promise.all(ends);
  }
  assert.ok(seen > 0);
});
