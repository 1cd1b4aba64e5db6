// Takes one child through running, stopped, exiting, zombie and gone, and looks at each stage through the
// package's public entry: by a selected and a full census and single reads, on the main thread and in a Worker.
// The fixture proves each stage before the look, and the exit window again after it. Prints a line of JSON a
// stage, and one at the end.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync } from "node:fs";
import { createInterface } from "node:readline";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { compareIdentities, inspectIdentity, listProcesses, readProcessCommand, readProcessIdentity } from "proc-safe";

/** What a stage must look like; a key with `undefined` must not be there. */
const EXPECTED = {
  running: { state: "running", exiting: undefined },
  stopped: { state: "stopped", exiting: undefined },
  exiting: { state: "running", exiting: true },
  zombie: { state: "zombie", exiting: undefined },
};
const COMMANDS = [["stop", "stopped"], ["exit", "exiting"], ["finish", "zombie"], ["reap", "gone"]];

if (!isMainThread) {
  parentPort.on("message", (question) => parentPort.postMessage(look(question)));
}

/** Everything that is asked of the package at one stage. */
function look({ pid, saved }) {
  const [selected] = listProcesses({ pids: [pid] });
  const full = listProcesses().find((row) => row.pid === pid);
  const [identity, command] = [readProcessIdentity(pid), readProcessCommand(pid, { timeoutMs: 60_000 })];
  return { selected, full, identity, command, saved: saved && inspectIdentity(saved) };
}

/** Runs the proof on both realms with a compiled fixture; the exit status is 1 if any stage fails. */
export async function proveCensus(fixture) {
  const total = { proof: `${process.platform}-${process.arch}`, node: process.version, passed: 0, failed: 0 };
  for (const realm of ["main", "worker"]) {
    for (const { error, ...stage } of await proveRealm(fixture, realm)) {
      total[error === undefined ? "passed" : "failed"]++;
      print({ realm, ...stage, ...(error !== undefined && { error }) });
    }
  }
  print(total);
  process.exitCode = total.failed === 0 && total.passed === 10 ? 0 : 1;
}

async function proveRealm(fixture, realm) {
  // The Worker is up before the child begins to exit: its start-up must not eat the window.
  const worker = realm === "worker" ? new Worker(new URL(import.meta.url), { execArgv: [] }) : undefined;
  const ask = async (question) => {
    if (worker === undefined) return look(question);
    worker.postMessage(question);
    return (await once(worker, "message"))[0];
  };
  // A session of its own: our group can have its leader outside this pid namespace, and then it is no fact.
  const child = spawn(fixture, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error("the fixture has ended");
    return JSON.parse(value);
  };
  const stages = [];
  try {
    let held = await next();
    await ask({ pid: process.pid }); // loads everything
    const first = await ask({ pid: held.pid });
    const saved = first.identity;
    stages.push(judge(held, first, saved));
    for (const [command, stage] of COMMANDS) {
      child.stdin.write(`${command}\n`);
      held = await next();
      if (held.stage !== stage) throw new Error(`the fixture is at ${held.stage}, not ${stage}`);
      const seen = await ask({ pid: held.pid, saved });
      if (stage === "exiting") {
        child.stdin.write("check\n");
        held = { ...held, ...(await next()) };
      }
      stages.push(judge(held, seen, saved));
    }
  } catch (error) {
    stages.push({ stage: "broken", error: String(error) });
  } finally {
    child.stdin.end();
    await worker?.terminate();
  }
  return stages;
}

function judge(held, seen, saved) {
  const error = (held.stage === "gone" ? wrongWhenGone(seen) : wrongWhenThere(held, seen, saved)) ?? wrongCommand(held, seen);
  return { ...held, ...(error !== undefined && { error, seen }) };
}

/** An exiting process may have its memory still, or not. */
function wrongCommand({ stage }, { command }) {
  if (stage === "exiting") return undefined;
  if (stage === "zombie" || stage === "gone") return command === null ? undefined : "a command of a process without memory";
  if (command === null || command.executable !== realpathSync(command.argv[0])) return "the command names another program";
  return command.cwd === realpathSync(".") ? undefined : `the working directory is ${command.cwd}`;
}

function wrongWhenGone({ selected, full, identity, saved }) {
  if (selected !== undefined || full !== undefined) return "a row of a process that is gone";
  if (identity !== null) return "an identity of a process that is gone";
  return saved === "gone" ? undefined : `the saved identity is ${saved}`;
}

function wrongWhenThere(held, { selected, full, identity }, saved) {
  const exited = held.stage === "zombie";
  const wanted = { pid: held.pid, owner: "same", parentPid: held.parent, uid: process.geteuid(), ...EXPECTED[held.stage] };
  for (const [kind, row] of Object.entries({ selected, full })) {
    for (const [key, value] of Object.entries(wanted)) {
      if (row?.[key] !== value) return `${key} of the ${kind} row is ${row?.[key]}, not ${value}`;
    }
    if (!(row.processGroupId > 0)) return `the ${kind} row has no process group`;
    if (row.identity?.exited !== exited) return `exited of the ${kind} row is ${row.identity?.exited}`;
    if (compareIdentities(row.identity, saved) !== "same") return `the ${kind} row is another process`;
  }
  if (identity?.exited !== exited || identity.parentPid !== held.parent) return "the single read differs";
  if (compareIdentities(identity, saved) !== "same") return "the single read is another process";
  return held.stage === "exiting" && held.stillExiting !== true ? "the exit window was over before the looks were" : undefined;
}

function print(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
