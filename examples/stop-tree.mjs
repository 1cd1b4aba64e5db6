// Stops a process and all below it: node stop-tree.mjs PID
//
// A stopped process has no children more, so the tree is frozen from above until a census finds nothing in it
// that runs; then it is ended from below, so that nothing falls to another parent before its turn.

import { setTimeout as pause } from "node:timers/promises";
import { descendantsOf, inspectIdentity, listProcesses, readProcessIdentity } from "proc-safe";

/** Answers with the identities that were ended. Throws where it cannot know the whole tree. */
export async function stopTree(root) {
  signal(root, "SIGSTOP");
  let tree;
  for (let last = -1; last !== 0; ) {
    const { processes, complete, gap } = descendantsOf(listProcesses(), root);
    if (!complete) throw new Error(`the tree of ${root.pid} is not known: ${gap}`);
    tree = processes.filter((row) => !row.identity.exited);
    const running = tree.filter((row) => row.state === "running" && row.exiting !== true).toReversed();
    for (const row of running) signal(row.identity, "SIGSTOP");
    last = running.length;
  }
  const identities = [...tree.map((row) => row.identity), root];
  for (const identity of identities) signal(identity, "SIGKILL");
  while (identities.some((identity) => inspectIdentity(identity) === "live")) await pause(5);
  return identities;
}

/** The pid may still change hands between the look and the signal, but not unseen for longer than that. */
function signal(identity, name) {
  if (inspectIdentity(identity) === "live") process.kill(identity.pid, name);
}

const root = readProcessIdentity(Number(process.argv[2]));
if (root === null) process.exit(1);
console.log(`${(await stopTree(root)).length} processes ended`);
