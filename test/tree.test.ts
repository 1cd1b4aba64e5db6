// Trees over rows: any order, any circle, any recycled parent, and what is not known is said.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { listProcesses, readProcessIdentity } from "proc-safe";
import type { ProcessIdentity, ProcessSnapshot } from "proc-safe";
import { buildForest, descendantsOf, findTree, membersOfGroup, membersOfSession } from "proc-safe/tree";
import type { Descendants, ProcessTree } from "proc-safe/tree";
import { start, whileHeld } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";

type Row = ProcessSnapshot & { readonly identity: ProcessIdentity };

function row(pid: number, parentPid: number, born = 0): Row {
  const common = { startTimeMicros: born, startTimeResolutionMicros: 1, exited: false };
  return { pid, owner: "same", parentPid, identity: { pid, parentPid, startTimeSinceBootMicros: born, ...common } };
}

const bare = (pid: number): ProcessSnapshot => ({ pid, owner: "unknown" });

function draw(trees: readonly ProcessTree[]): string {
  return trees.map(({ row: { pid }, children }) => pid + (children.length > 0 ? `(${draw(children)})` : "")).join(" ");
}

/** The pids, and what is said of them. */
function say({ processes, undecided, complete, gap }: Descendants): unknown[] {
  expect(complete).toBe(gap === undefined);
  return [processes.map(({ pid }) => pid), undecided.map(({ pid }) => pid), gap];
}

/** On a busy host a census may miss the newborn parent of a newborn child. */
function settled(root: ProcessIdentity): Descendants {
  for (let tries = 0; ; tries++) {
    const answer = descendantsOf(listProcesses(), root);
    if (answer.gap !== "undecided" || tries === 100) return answer;
  }
}

const orders = <T>(rows: readonly T[]): T[][] => [[...rows], rows.toReversed(), [...rows.slice(2), ...rows.slice(0, 2)]];

test("the order of rows does not matter, and a child may have a lower pid", () => {
  const rows = [row(400, 13362, 2), row(1, 0), row(13362, 1, 1), row(2, 0), row(7, 400, 3)];
  for (const order of orders(rows)) {
    expect(draw(buildForest(order))).toBe("1(13362(400(7))) 2");
    expect(say(descendantsOf(order, rows[1]!.identity))).toEqual([[7, 400, 13362], [], undefined]);
  }
});

test("a parent born after its child is another process with the same number", () => {
  expect(draw(buildForest([row(1, 0), row(50, 1, 900), row(60, 50, 100)]))).toBe("1(50) 60");
  expect(draw(buildForest([row(1, 0), row(50, 1, 100), row(60, 50, 100)]))).toBe("1(50(60))");
});

test("births are ordered by unique id where there is no start since boot, else by the wall clock", () => {
  const born = (pid: number, parentPid: number, startTimeMicros: number, more: object = {}): ProcessSnapshot => ({
    pid, owner: "same", parentPid,
    identity: { pid, parentPid, startTimeMicros, startTimeResolutionMicros: 1, exited: false, ...more },
  });
  const tree = (parent: [number, object?], child: [number, object?]): string =>
    draw(buildForest([born(1, 0, ...parent), born(2, 1, ...child)]));
  expect(tree([5], [6])).toBe("1(2)");
  expect(tree([6], [5])).toBe("1 2");
  expect(tree([6, { uniqueId: "9" }], [5, { uniqueId: "10" }])).toBe("1(2)");
  expect(tree([5, { uniqueId: "10" }], [6, { uniqueId: "9" }])).toBe("1 2");
  expect(tree([5, { uniqueId: "18446744073709551615" }], [6, { uniqueId: "18446744073709551614" }])).toBe("1 2");
  expect(tree([6, { startTimeSinceBootMicros: 1, uniqueId: "2" }], [5, { startTimeSinceBootMicros: 2, uniqueId: "1" }])).toBe("1(2)");
  expect(tree([6, { startTimeSinceBootMicros: 1, timeNamespace: "7", uniqueId: "1" }], [5, { startTimeSinceBootMicros: 2, uniqueId: "2" }])).toBe("1 2");
  expect(tree([5, { startTimeSinceBootMicros: 2, timeNamespace: "7" }], [6, { startTimeSinceBootMicros: 1 }])).toBe("1(2)");
});

test("a missing or unknown parent makes a top, and so does an unknown birth", () => {
  expect(draw(buildForest([row(60, 50), bare(70), row(80, 80)]))).toBe("60 70 80");
  const { identity: _, ...unborn } = row(61, 60);
  expect(draw(buildForest([row(60, 0), unborn, row(62, 61)]))).toBe("60 61 62");
  expect(buildForest([])).toEqual([]);
});

test("of a circle no edge counts, and every row stands once", () => {
  const rows = [row(5, 7), row(7, 6), row(6, 5), row(8, 6), row(1, 0), row(9, 1)];
  for (const order of orders(rows)) {
    expect(draw(buildForest(order))).toBe("1(9) 5 6(8) 7");
    expect(say(descendantsOf(order, rows[4]!.identity))).toEqual([[9], [5, 6, 7, 8], "undecided"]);
    expect(say(descendantsOf(order, rows[2]!.identity))).toEqual([[8], [5, 7], "undecided"]);
  }
});

test("findTree", () => {
  const forest = buildForest([row(1, 0), row(50, 1), row(60, 50), row(61, 50)]);
  expect(draw([findTree(forest, 50)!])).toBe("50(60 61)");
  expect(draw([findTree(forest, 61)!])).toBe("61");
  expect(findTree(forest, 99)).toBeUndefined();
});

const FAMILY = [row(1, 0, 0), row(10, 1, 5), row(11, 10, 6), row(12, 10, 6), row(13, 11, 7), row(20, 1, 6)];
const ROOT = FAMILY[1]!.identity;

test("descendants, deepest first, without the root and its relatives", () => {
  expect(say(descendantsOf(FAMILY, ROOT))).toEqual([[13, 12, 11], [], undefined]);
  expect(say(descendantsOf(FAMILY, FAMILY[5]!.identity))).toEqual([[], [], undefined]);
  expect(descendantsOf(FAMILY, ROOT).processes[0]).toBe(FAMILY[4]);
  expect("gap" in descendantsOf(FAMILY, ROOT)).toBe(false);
});

const GAPS: readonly (readonly [string, readonly ProcessSnapshot[], readonly unknown[]])[] = [
  ["no row of the root", FAMILY.filter(({ pid }) => pid !== 10), [[], [], "root-missing"]],
  ["another birth", FAMILY.map((of) => (of.pid === 10 ? row(10, 1, 6) : of)), [[], [], "root-reused"]],
  ["another boot", FAMILY.map((of) => (of.pid === 10 ? { ...of, identity: { ...of.identity, bootId: "b" } } : of)), [[], [], "root-unknown"]],
  ["a bare row of the root", FAMILY.map((of) => (of.pid === 10 ? bare(10) : of)), [[], [], "root-unknown"]],
  ["a zombie", FAMILY.map((of) => (of.pid === 10 ? { ...of, identity: { ...of.identity, exited: true } } : of)), [[], [], "root-exited"]],
  ["a bare row", [...FAMILY, bare(30)], [[13, 12, 11], [30], "undecided"]],
  ["a parent that has no row", [...FAMILY, row(30, 29, 6), row(31, 30, 6)], [[13, 12, 11], [30, 31], "undecided"]],
  ["the same, of the root's tick", [...FAMILY, row(30, 29, 5)], [[13, 12, 11], [30], "undecided"]],
  ["the same, born before the root", [...FAMILY, row(30, 29, 4), row(31, 30, 6)], [[13, 12, 11], [], undefined]],
  ["a recycled parent", [...FAMILY, row(30, 20, 5)], [[13, 12, 11], [30], "undecided"]],
  ["a recycled parent among its own", [...FAMILY, row(30, 13, 6), row(31, 30, 6)], [[13, 12, 11], [30, 31], "undecided"]],
  ["an unknown birth below it", [...FAMILY, { pid: 30, owner: "same", parentPid: 13 }, row(31, 30, 8)], [[13, 12, 11], [30, 31], "undecided"]],
  ["a parent outside the namespace", [...FAMILY, row(30, 0, 9)], [[13, 12, 11], [], undefined]],
  ["an ancestor of the root's tick that has no parent", [row(1, 99, 5), ...FAMILY.slice(1)], [[13, 12, 11], [], undefined]],
];

for (const [what, rows, answer] of GAPS) {
  test(`descendants beside ${what}`, () => {
    for (const order of orders(rows)) expect(say(descendantsOf(order, ROOT))).toEqual(answer);
  });
}

test("members of groups and sessions", () => {
  const member = (pid: number, processGroupId: number, sessionId: number): ProcessSnapshot => ({ ...row(pid, 1), processGroupId, sessionId });
  const rows = [member(12, 10, 1), member(10, 10, 1), member(11, 11, 1), row(2, 0)];
  const pids = ({ processes, undecided, complete }: ReturnType<typeof membersOfGroup>): unknown[] => [
    processes.map(({ pid }) => pid), undecided.map(({ pid }) => pid), complete,
  ];
  expect(pids(membersOfGroup(rows, 10))).toEqual([[10, 12], [], true]);
  expect(pids(membersOfGroup(rows, 1))).toEqual([[], [], true]);
  expect(pids(membersOfSession(rows, 1))).toEqual([[10, 11, 12], [], true]);
  expect(pids(membersOfSession([...rows, bare(5)], 1))).toEqual([[10, 11, 12], [5], false]);
});

test("members by the identity of one of them", () => {
  const member = (pid: number, processGroupId: number, born: number): Row => ({ ...row(pid, 1, born), processGroupId, sessionId: processGroupId });
  const [leader, other, third, stranger] = [member(10, 10, 5), member(12, 10, 6), member(13, 10, 7), member(20, 20, 5)];
  const kernel = row(2, 0);
  const whole = [kernel, leader, other, third, stranger];
  const say = (rows: readonly ProcessSnapshot[], of: ProcessIdentity): unknown[] => {
    const answers = [membersOfGroup(rows, of), membersOfSession(rows, of)].map(({ processes, undecided, complete, gap }) => {
      expect(complete).toBe(gap === undefined);
      return [processes.map(({ pid }) => pid), undecided.map(({ pid }) => pid), gap];
    });
    expect(answers[0]).toEqual(answers[1]);
    return answers[0]!;
  };
  for (const one of [leader, other, third]) {
    for (const order of orders(whole)) expect(say(order, one.identity)).toEqual([[10, 12, 13], [], undefined]);
  }
  expect(say([...whole, bare(30)], other.identity)).toEqual([[10, 12, 13], [30], "undecided"]);
  // A zombie keeps its group until it is reaped.
  const zombie: Row = { ...leader, state: "zombie", identity: { ...leader.identity, exited: true } };
  expect(say([zombie, other], leader.identity)).toEqual([[10, 12], [], undefined]);
  // Without the leader the number alone says nothing: its group goes on, or it is a stranger's.
  expect(say([other, third, stranger], leader.identity)).toEqual([[], [12, 13], "member-missing"]);
  expect(say([other, third, stranger, bare(30)], leader.identity)).toEqual([[], [12, 13, 30], "member-missing"]);
  expect(say([leader, third], other.identity)).toEqual([[], [], "member-missing"]);
  // Another process has its pid, and leads: a number is not given away while a group has it.
  const heir = member(10, 10, 9);
  expect(say([heir, other], leader.identity)).toEqual([[], [], "member-reused"]);
  expect(membersOfGroup([heir, other], 10).processes).toHaveLength(2);
  // A row that does not say which process it is, or in which group.
  expect(say([bare(10), other], leader.identity)).toEqual([[], [10, 12], "member-unknown"]);
  const elsewhere = { ...leader.identity, timeNamespace: "7" };
  expect(say([leader, other], elsewhere)).toEqual([[], [10, 12], "member-unknown"]);
  expect(say(whole, kernel.identity)).toEqual([[], [], "member-unknown"]);
});

test("rows of a system without sessions or groups leave their members undecided", () => {
  const { sessionId: _, ...darwin } = { ...row(10, 1), processGroupId: 10, sessionId: 1 };
  const rows = [darwin, { ...row(11, 10), processGroupId: 10 }];
  expect(membersOfGroup(rows, 10)).toMatchObject({ complete: true, processes: rows });
  expect(membersOfSession(rows, 10)).toEqual({ processes: [], undecided: rows, complete: false, gap: "undecided" });
  expect(membersOfSession(rows, darwin.identity)).toEqual({ processes: [], undecided: [], complete: false, gap: "member-unknown" });
});

test("10,000 rows in one chain, and in one family", () => {
  const chain = Array.from({ length: 10_000 }, (_, index) => row(index + 1, index));
  expect(buildForest(chain)).toHaveLength(1);
  expect(findTree(buildForest(chain), 10_000)?.children).toEqual([]);
  expect(descendantsOf(chain, chain[0]!.identity).processes).toHaveLength(9_999);
  const family = Array.from({ length: 10_000 }, (_, index) => row(index + 1, index === 0 ? 0 : 1));
  expect(buildForest(family)[0]?.children).toHaveLength(9_999);
  const circle = Array.from({ length: 10_000 }, (_, index) => row(index + 1, index === 0 ? 10_000 : index));
  expect(buildForest(circle)).toHaveLength(10_000);
});

test("random rows: every edge is named and in order of birth, every other row is a top or in a circle", () => {
  for (let world = 0; world < 500; world++) {
    const pids = Array.from({ length: 8 }, (_, index) => index + 1);
    const rows = pids.map((pid) => {
      const born = row(pid, Math.floor(Math.random() * 10), Math.floor(Math.random() * 4));
      return Math.random() < 0.1 ? bare(pid) : born;
    });
    const edges = edgesOf(rows);
    const drawn: string[] = [];
    const stack = [...buildForest(rows)];
    for (let tree = stack.pop(); tree !== undefined; tree = stack.pop()) {
      for (const child of tree.children) drawn.push(`${child.row.pid}<${tree.row.pid}`);
      stack.push(...tree.children);
    }
    expect(drawn.sort()).toEqual([...edges].map(([child, parent]) => `${child}<${parent}`).sort());
    for (const { pid, identity } of rows) {
      if (identity === undefined) continue;
      const { processes, undecided } = descendantsOf(rows, identity);
      const known = new Set(processes.map((of) => of.pid));
      expect([...known].sort()).toEqual(pids.filter((one) => one !== pid && up(edges, one).includes(pid)).sort());
      const open = pids.filter((one) => !known.has(one) && one !== pid && mayDescend(rows, edges, one, pid));
      expect(undecided.map((of) => of.pid)).toEqual(open);
    }
  }
});

/** By the definition, slowly: child to parent. */
function edgesOf(rows: readonly ProcessSnapshot[]): Map<number, number> {
  const edges = new Map<number, number>();
  for (const child of rows) {
    const parent = rows.find(({ pid }) => pid === child.parentPid);
    const [older, younger] = [parent?.identity?.startTimeMicros, child.identity?.startTimeMicros];
    if (older !== undefined && younger !== undefined && older <= younger) edges.set(child.pid, parent!.pid);
  }
  const inCircle = [...edges.keys()].filter((pid) => up(edges, pid).slice(1).includes(pid));
  for (const pid of inCircle) edges.delete(pid);
  return edges;
}

/** A pid and those above it, until one comes again. */
function up(edges: ReadonlyMap<number, number>, pid: number): number[] {
  const chain = [pid];
  for (let next = edges.get(pid); next !== undefined; next = edges.get(next)) {
    chain.push(next);
    if (chain.indexOf(next) < chain.length - 1) break;
  }
  return chain;
}

function mayDescend(rows: readonly ProcessSnapshot[], edges: ReadonlyMap<number, number>, pid: number, root: number): boolean {
  const find = (wanted: number): ProcessSnapshot => rows.find((of) => of.pid === wanted)!;
  const top = find(up(edges, pid).at(-1)!);
  if (top.parentPid === 0 || top.pid === up(edges, root).at(-1)) return false;
  const [born, since] = [top.identity?.startTimeMicros, find(root).identity!.startTimeMicros];
  return born === undefined || born >= since;
}

test("answers are frozen plain data, and rows are handed on as they are", () => {
  const forest = buildForest(FAMILY);
  const answer = descendantsOf(FAMILY, ROOT);
  for (const value of [forest, forest[0], forest[0]?.children, answer, answer.processes, answer.undecided, membersOfGroup(FAMILY, 1), membersOfGroup(FAMILY, 1).processes]) {
    expect(Object.isFrozen(value)).toBe(true);
  }
  expect(JSON.parse(JSON.stringify(forest))).toEqual(forest);
  expect(say(descendantsOf(JSON.parse(JSON.stringify(FAMILY)) as Row[], ROOT))).toEqual([[13, 12, 11], [], undefined]);
});

const BAD_ROWS: readonly (readonly [string, unknown])[] = [
  ["nothing", undefined],
  ["an object", {}],
  ["a set", new Set(FAMILY)],
  ["a number in the rows", [1]],
  ["null in the rows", [null]],
  ["a hole", Object.assign([], { 1: row(1, 0) })],
  ["a row without a pid", [{ owner: "same" }]],
  ["an inherited pid", [Object.create(row(1, 0))]],
  ["a pid that is text", [{ ...row(1, 0), pid: "1" }]],
  ["a parent below 0", [{ ...row(1, 0), parentPid: -1 }]],
  ["a group that is text", [{ ...row(1, 0), processGroupId: "1" }]],
  ["a session that is null", [{ ...row(1, 0), sessionId: null }]],
  ["an identity that is null", [{ ...row(1, 0), identity: null }]],
  ["an identity that is a number", [{ ...row(1, 0), identity: 5 }]],
  ["a birth that is text", [{ ...row(1, 0), identity: { ...row(1, 0).identity, startTimeMicros: "0" } }]],
  ["a birth since boot that is no number", [{ ...row(1, 0), identity: { ...row(1, 0).identity, startTimeSinceBootMicros: NaN } }]],
  ["a unique id that is a number", [{ ...row(1, 0), identity: { ...row(1, 0).identity, uniqueId: 5 } }]],
  ["a time namespace that is a number", [{ ...row(1, 0), identity: { ...row(1, 0).identity, timeNamespace: 5 } }]],
  ["two rows of one pid", [row(1, 0), row(2, 0), row(1, 0, 1)]],
  ["a getter that throws", [{ get pid(): number { throw new Error("getter"); } }]],
  ["a Proxy that throws", new Proxy([1], { get: () => { throw new Error("trap"); } })],
];

for (const [what, rows] of BAD_ROWS) {
  test(`${what}: no rows of a census`, () => {
    const invalid = expect.objectContaining({ name: "ProcSafeError", code: "invalid-argument" }) as Error;
    expect(() => buildForest(rows as never)).toThrow(invalid);
    expect(() => descendantsOf(rows as never, ROOT)).toThrow(invalid);
    expect(() => membersOfGroup(rows as never, 1)).toThrow(invalid);
    expect(() => membersOfSession(rows as never, 1)).toThrow(invalid);
  });
}

test("each fact of a row is read once", () => {
  const reads: string[] = [];
  const watched = FAMILY.map((of) => new Proxy(of, { get: (target, key) => (reads.push(`${target.pid} ${String(key)}`), Reflect.get(target, key)) }));
  descendantsOf(watched, ROOT);
  expect(new Set(reads).size).toBe(reads.length);
});

test("wrong roots and numbers", () => {
  const invalid = expect.objectContaining({ name: "ProcSafeError", code: "invalid-argument" }) as Error;
  for (const root of [undefined, null, 10, {}, { ...ROOT, pid: "10" }]) expect(() => descendantsOf(FAMILY, root as never)).toThrow(invalid);
  for (const id of [undefined, null, "1", -1, NaN, {}, { ...ROOT, pid: "10" }]) {
    expect(() => membersOfGroup(FAMILY, id as never)).toThrow(invalid);
    expect(() => membersOfSession(FAMILY, id as never)).toThrow(invalid);
  }
});

test("what somebody added to Object.prototype is no fact of a row", () => {
  const proto = Object.prototype as Record<string, unknown>;
  Object.assign(proto, { parentPid: 10, identity: { startTimeMicros: 9 }, uniqueId: "1" });
  try {
    expect(say(descendantsOf([...FAMILY, bare(30)], ROOT))).toEqual([[13, 12, 11], [30], "undecided"]);
  } finally {
    for (const key of ["parentPid", "identity", "uniqueId"]) delete proto[key];
  }
});

nativeTest("the descendants, the group and the session of real processes", ["linux"], async () => {
  const family = start("family", ["5"]);
  try {
    const { pids } = (await family.next()) as { pids: number[] };
    const rows = listProcesses();
    const root = rows.find(({ pid }) => pid === pids[1])!;
    expect(say(settled(root.identity!))).toEqual([[pids[4], pids[3], pids[2]], [], undefined]);
    const leader = rows.find(({ pid }) => pid === pids[0])!.parentPid!;
    const all = [leader, ...pids].sort((a, b) => a - b);
    for (const { complete, processes } of [membersOfGroup(rows, root.processGroupId!), membersOfSession(rows, root.sessionId!)]) {
      expect([complete, processes.map(({ pid }) => pid).sort((a, b) => a - b)]).toEqual([true, all]);
    }
    family.write("check\n");
    expect(await family.next()).toEqual({ still: true });
  } finally {
    await family.end();
  }
});

nativeTest("a group whose leader has ended goes on, and is nobody's by number alone", ["linux"], async () => {
  const shell = spawn("sh", ["-c", "sleep 1000 & echo $!; wait"], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(shell.stdout, "data")) as [Buffer];
  const sleeper = Number(line);
  try {
    const [leader, member] = [shell.pid!, sleeper].map((pid) => readProcessIdentity(pid)!) as [ProcessIdentity, ProcessIdentity];
    const pids = [leader.pid, sleeper].sort((a, b) => a - b);
    for (const of of [leader, member]) {
      for (const answer of [membersOfGroup(listProcesses(), of), membersOfSession(listProcesses(), of)]) {
        expect([answer.processes.map(({ pid }) => pid), answer.complete]).toEqual([pids, true]);
      }
    }
    const exit = once(shell, "exit");
    shell.kill("SIGKILL");
    await exit;
    const answer = membersOfGroup(listProcesses(), leader);
    expect([answer.processes, answer.undecided.map(({ pid }) => pid), answer.gap]).toEqual([[], [sleeper], "member-missing"]);
    expect(membersOfGroup(listProcesses(), member).processes.map(({ pid }) => pid)).toEqual([sleeper]);
  } finally {
    process.kill(sleeper, "SIGKILL");
  }
});

nativeTest("a root that has ended, and one whose pid is another's now", ["linux", "root"], async () => {
  const child = spawn("sleep", ["1000"], { stdio: "ignore" });
  await new Promise((resolve) => child.once("spawn", resolve));
  const identity = readProcessIdentity(child.pid!)!;
  expect(say(settled(identity))).toEqual([[], [], undefined]);
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGKILL");
  await closed;
  expect(descendantsOf(listProcesses(), identity).gap).toBe("root-missing");
  await whileHeld(["zombie"], ({ pid }) => {
    expect(descendantsOf(listProcesses(), readProcessIdentity(pid)!).gap).toBe("root-exited");
  });
  const recycler = start("recycler", ["set-tid"]);
  try {
    const pid = (await recycler.next())["pid"] as number;
    const before = { ...identity, pid };
    for (let look = 0; ; look++) {
      const rows = listProcesses({ pids: [pid] });
      if (rows[0]?.identity === undefined) continue;
      expect(descendantsOf(rows, before).gap).toBe("root-reused");
      expect(membersOfGroup(rows, before).gap).toBe("member-reused");
      if (look > 100) break;
    }
  } finally {
    await recycler.end();
  }
});
