// Trees over rows: any order, any cycle, any recycled parent.

import { expect, test } from "vitest";
import type { ProcessSnapshot } from "proc-safe";
import { buildForest, findNode } from "../dist/tree.js";
import type { TreeNode } from "../dist/tree.js";

function row(pid: number, parentPid: number, born = 0): ProcessSnapshot {
  const common = { startTimeMicros: born, startTimeResolutionMicros: 1, exited: false };
  return { pid, owner: "same", parentPid, identity: { pid, parentPid, startTimeSinceBootMicros: born, ...common } };
}

function draw(nodes: readonly TreeNode[]): string {
  return nodes.map(({ row: { pid }, children }) => pid + (children.length > 0 ? `(${draw(children)})` : "")).join(" ");
}

test("the order of rows does not matter, and a child may have a lower pid", () => {
  const rows = [row(400, 13362, 2), row(1, 0), row(13362, 1, 1), row(2, 0), row(7, 400, 3)];
  for (const order of [rows, rows.toReversed(), [...rows].sort((a, b) => a.pid - b.pid)]) {
    expect(draw(buildForest(order))).toBe("1(13362(400(7))) 2");
  }
});

test("a parent born after its child is another process with the same number", () => {
  expect(draw(buildForest([row(1, 0), row(50, 1, 900), row(60, 50, 100)]))).toBe("1(50) 60");
  expect(draw(buildForest([row(1, 0), row(50, 1, 100), row(60, 50, 100)]))).toBe("1(50(60))");
});

test("a missing or unknown parent makes a root", () => {
  expect(draw(buildForest([row(60, 50), { pid: 70, owner: "unknown" }, row(80, 80)]))).toBe("60 70 80");
  expect(buildForest([])).toEqual([]);
});

test("a circle is cut, and every row stands once", () => {
  const forest = buildForest([row(5, 7), row(7, 6), row(6, 5), row(8, 6), row(1, 0)]);
  expect(draw(forest)).toBe("1 5(6(7 8))");
});

test("findNode", () => {
  const forest = buildForest([row(1, 0), row(50, 1), row(60, 50)]);
  expect(draw([findNode(forest, 50)!])).toBe("50(60)");
  expect(findNode(forest, 99)).toBeUndefined();
});

test("10,000 rows in one chain, and in one family", () => {
  const chain = Array.from({ length: 10_000 }, (_, index) => row(index + 1, index));
  expect(buildForest(chain)).toHaveLength(1);
  const family = Array.from({ length: 10_000 }, (_, index) => row(index + 1, index === 0 ? 0 : 1));
  expect(buildForest(family)[0]?.children).toHaveLength(9_999);
});
