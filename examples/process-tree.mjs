// Prints the processes below a process, and their names: node process-tree.mjs PID

import { buildForest, findTree, listProcesses } from "proc-safe";

const top = findTree(buildForest(listProcesses()), Number(process.argv[2]));
const stack = top === undefined ? [] : [{ tree: top, depth: 0 }];
for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
  const { tree, depth } = next;
  console.log(`${"  ".repeat(depth)}${tree.row.pid} ${JSON.stringify(tree.row.name ?? "?")}`);
  for (const child of tree.children.toReversed()) stack.push({ tree: child, depth: depth + 1 });
}
