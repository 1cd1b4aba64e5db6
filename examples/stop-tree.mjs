// Stops a process and all below it: node stop-tree.mjs PID
//
// A stopped process has no children more, so the tree is frozen from above until a census finds nothing in it
// that runs; then it is ended from below, so that nothing falls to another parent before its turn.

import { setTimeout as pause } from "node:timers/promises";
import { descendantsOf, inspectIdentity, listProcesses, readProcessIdentity } from "proc-safe";

/** Answers with the identities that were ended. Lets the tree go on, and throws, where it cannot know it whole. */
export async function stopTree(root) {
  const stopped = [];
  const stop = (identity) => stopped.push(identity) && signal(identity, "SIGSTOP");
  stop(root);
  let tree;
  for (let running; running !== 0; ) {
    tree = wholeTree(root);
    if (tree === undefined) {
      for (const identity of stopped) signal(identity, "SIGCONT");
      throw new Error(`the tree of ${root.pid} is not known`);
    }
    const still = tree.filter((row) => row.state === "running" && row.exiting !== true);
    for (const row of still.toReversed()) stop(row.identity);
    running = still.length;
  }
  const identities = [...tree.map((row) => row.identity), root];
  for (const identity of identities) signal(identity, "SIGKILL");
  while (identities.some((identity) => inspectIdentity(identity) === "live")) await pause(5);
  return identities;
}

/** A census may miss the newborn parent of a newborn child, anywhere on the host; the next one sees it. */
function wholeTree(root) {
  for (let tries = 0; tries < 50; tries++) {
    const { processes, complete, gap } = descendantsOf(listProcesses(), root);
    if (complete) return processes.filter((row) => !row.identity.exited);
    if (gap !== "undecided") return undefined;
  }
}

/** The pid may still change hands between the look and the signal, but not unseen for longer than that. */
function signal(identity, name) {
  if (inspectIdentity(identity) === "live") process.kill(identity.pid, name);
}

const root = readProcessIdentity(Number(process.argv[2]));
if (root === null) process.exit(1);
console.log(`${(await stopTree(root)).length} processes ended`);
