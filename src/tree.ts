// Trees over the rows of one census: independent of the order of rows, and safe from cycles.

import type { ProcessSnapshot } from "./types.js";

/** A process and those that it is the parent of, in ascending order of pid. */
export interface TreeNode {
  readonly row: ProcessSnapshot;
  readonly children: readonly TreeNode[];
}

/**
 * The trees of a census. A row stands under its parent if the parent has a row and was born no later:
 * otherwise the number of a dead parent is another process's now, and the row is a root.
 */
export function buildForest(rows: readonly ProcessSnapshot[]): readonly TreeNode[] {
  const nodes = new Map(rows.map((row) => [row.pid, { row, children: [] as TreeNode[] }]));
  const roots: TreeNode[] = [];
  const ascending = [...nodes.values()].sort((a, b) => a.row.pid - b.row.pid);
  for (const node of ascending) {
    const parent = node.row.parentPid === undefined ? undefined : nodes.get(node.row.parentPid);
    const holds = parent !== undefined && parent !== node && wasBornBefore(parent.row, node.row);
    (holds ? parent.children : roots).push(node);
  }
  return [...roots, ...cutCycles(ascending, roots)];
}

/** Births tie within a tick; then the parent's claim stands. */
function wasBornBefore(parent: ProcessSnapshot, child: ProcessSnapshot): boolean {
  const start = (row: ProcessSnapshot): number | undefined =>
    row.identity?.startTimeSinceBootMicros ?? row.identity?.startTimeMicros;
  const [older, younger] = [start(parent), start(child)];
  return older === undefined || younger === undefined || older <= younger;
}

/**
 * Rows read at different instants can name each other as parents, and then no root leads to them: the
 * one with the least pid becomes a root, without the edge that closes the circle.
 */
function cutCycles(ascending: readonly TreeNode[], roots: readonly TreeNode[]): TreeNode[] {
  const reached = new Set<TreeNode>();
  const reach = (from: TreeNode): void => {
    const stack = [from];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      reached.add(node);
      stack.push(...node.children.filter((child) => !reached.has(child)));
    }
  };
  roots.forEach(reach);
  const more: TreeNode[] = [];
  for (const node of ascending) {
    if (reached.has(node)) continue;
    reach(node);
    const closing = [...reached].find((parent) => parent.children.includes(node));
    if (closing !== undefined) (closing.children as TreeNode[]).splice(closing.children.indexOf(node), 1);
    more.push(node);
  }
  return more;
}

/** The node of a pid, wherever it stands. */
export function findNode(forest: readonly TreeNode[], pid: number): TreeNode | undefined {
  const stack = [...forest];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node.row.pid === pid) return node;
    stack.push(...node.children);
  }
  return undefined;
}
