// The documented interfaces of pidtree and ps-tree over a census: what somebody who replaces them needs.

import { buildForest, findTree, listProcesses } from "proc-safe";
import type { ProcessSnapshot, ProcessTree } from "proc-safe";

export interface Pair {
  readonly ppid: number;
  readonly pid: number;
}

/** pidtree: everything below a pid; -1 stands for all processes. */
export async function pidtree(pid: number, { root = false } = {}): Promise<Pair[]> {
  const rows = pid === -1 ? listProcesses() : below(pid, root);
  return rows.map((row) => ({ ppid: row.parentPid ?? 0, pid: row.pid }));
}

/** ps-tree: everything below a pid, with names and states in the letters of ps. */
export function psTree(pid: number, callback: (error: Error | null, children: readonly { PPID: string; PID: string; COMMAND: string }[]) => void): void {
  const children = findTree(buildForest(listProcesses()), pid) === undefined ? [] : below(pid, false);
  callback(null, children.map((row) => ({ PPID: String(row.parentPid), PID: String(row.pid), COMMAND: row.name ?? "" })));
}

function below(pid: number, root: boolean): ProcessSnapshot[] {
  const top = findTree(buildForest(listProcesses()), pid);
  if (top === undefined) throw new Error("No matching pid found");
  const found: ProcessTree[] = [top];
  for (const tree of found) found.push(...tree.children);
  return found.slice(root ? 0 : 1).map((tree) => tree.row);
}
