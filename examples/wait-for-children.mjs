// Waits until nothing runs below a process: node wait-for-children.mjs PID SECONDS
// Exit status: 0 nothing runs there any more, 1 some still do, 2 that cannot be known.

import { setTimeout as pause } from "node:timers/promises";
import { descendantsOf, listProcesses, readProcessIdentity } from "proc-safe";

const [pid, seconds] = process.argv.slice(2).map(Number);
const root = readProcessIdentity(pid);
const end = Date.now() + seconds * 1000;

for (;;) {
  const { processes, gap } = root === null ? { processes: [], gap: "root-missing" } : descendantsOf(listProcesses(), root);
  const running = processes.filter((row) => row.state !== "zombie");
  if (running.length === 0 && gap === undefined) process.exit(0);
  if (gap?.startsWith("root-")) process.exit(2); // what it left behind has other parents now
  if (Date.now() > end) process.exit(running.length > 0 ? 1 : 2);
  await pause(50);
}
