// One JavaScript contender in a process of its own: contender.mjs NAME. For each line on standard input
// it takes one census, or does what else the line says, and answers with nanoseconds, rows, and its own user and
// kernel time in µs.

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

/** Of the rows of one census: the first is the init's, the middle one a sleeper's. */
const TREES = {
  forest: (rows) => buildForest(rows),
  descendants: (rows) => descendantsOf(rows, rows[0].identity).processes,
  members: (rows) => membersOfGroup(rows, rows[rows.length >> 1].identity).processes,
};

const name = process.argv[2];
const census = await CENSUSES[name]();
const { buildForest, descendantsOf, membersOfGroup, readProcessIdentity } = await import("../dist/index.js");
let known;

process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  const [what, which, count] = line.split(" ");
  if (what === "census" && name === "proc-safe") await census(); // its caches and its processor wake up
  if (what === "tree") known ??= await census();
  const cpu = process.cpuUsage();
  const start = process.hrtime.bigint();
  let rows;
  if (what === "identity") {
    for (rows = 0; rows < Number(count); rows++) readProcessIdentity(Number(which));
  } else if (what === "tree") {
    rows = TREES[which](known).length;
  } else {
    rows = (await census()).length;
  }
  const nanos = process.hrtime.bigint() - start;
  const { user, system } = process.cpuUsage(cpu);
  process.stdout.write(`${nanos} ${rows} ${user} ${system}\n`);
}
