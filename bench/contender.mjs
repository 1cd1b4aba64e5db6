// One JavaScript contender in a process of its own: contender.mjs NAME. For each line on standard input
// it takes one census and answers with nanoseconds, rows, and its own user and kernel time in µs.

import { execFile } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);

const CENSUSES = {
  "proc-safe": async () => {
    const { listProcesses } = await import("../dist/index.js");
    return () => listProcesses();
  },
  "ps-list": async () => {
    const { default: psList } = await import("ps-list");
    return () => psList();
  },
  pidtree: async () => {
    const { default: pidtree } = await import("pidtree");
    return () => pidtree(-1, { advanced: true });
  },
  systeminformation: async () => {
    const { default: information } = await import("systeminformation");
    return async () => (await information.processes()).list;
  },
  "find-process": async () => {
    const { default: find } = await import("find-process");
    return () => find("name", /./);
  },
  ps: () => async () => {
    const { stdout } = await run("ps", ["-axo", "pid=,ppid=,pgid=,sess=,euid=,stat=,lstart=,comm="], { maxBuffer: 1 << 28 });
    return stdout.trimEnd().split("\n");
  },
};

const name = process.argv[2];
const census = await CENSUSES[name]();
const { readProcessIdentity } = await import("../dist/index.js");

process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  const [what, pid, count] = line.split(" ");
  if (what === "census" && name === "proc-safe") await census(); // its caches and its processor wake up
  const cpu = process.cpuUsage();
  const start = process.hrtime.bigint();
  let rows;
  if (what === "identity") {
    for (rows = 0; rows < Number(count); rows++) readProcessIdentity(Number(pid));
  } else {
    rows = (await census()).length;
  }
  const nanos = process.hrtime.bigint() - start;
  const { user, system } = process.cpuUsage(cpu);
  process.stdout.write(`${nanos} ${rows} ${user} ${system}\n`);
}
