// The public entry `proc-safe/tree`: who descends from whom, and who belongs together, in the rows of one
// census. Pure: it reads nothing of the system and loads no binding.

import { checkIdentity, checkPid, checkRows } from "./arguments.js";
import type { RowFacts } from "./arguments.js";
import { compare, orderOfBirths } from "./births.js";
import type { ProcessIdentity, ProcessSnapshot } from "./types.js";

export type { ProcessIdentity, ProcessSnapshot } from "./types.js";

/** A process and those that it is the parent of, in ascending order of pid. */
export interface ProcessTree {
  readonly row: ProcessSnapshot;
  readonly children: readonly ProcessTree[];
}

/** A row, the row that is proved to be its parent's, and those whose parent it is. */
interface Kin {
  readonly facts: RowFacts;
  /** Its place among all. */
  readonly place: number;
  parent: Kin | undefined;
  children: readonly Kin[];
}

const NONE: readonly never[] = Object.freeze([]);

/**
 * The trees of a census, each row once, in ascending order of pid on every level; rows may come in any order. A
 * row stands under the row of its `parentPid` if both births are known and the parent was born no later:
 * otherwise it is the top of a tree, and so is each of those that name each other in a circle.
 *
 * @throws {ProcSafeError} `invalid-argument` for what are no rows of one census.
 */
export function buildForest(rows: readonly ProcessSnapshot[]): readonly ProcessTree[] {
  const all = relate(checkRows(rows));
  const tops = all.filter(({ parent }) => parent === undefined);
  const trees = Array<ProcessTree>(all.length);
  const treesOf = (some: readonly Kin[]): readonly ProcessTree[] =>
    some.length === 0 ? NONE : Object.freeze(some.map(({ place }) => trees[place]!));
  // A child is made before its parent, so that each is whole, and frozen, at once.
  for (const { facts, place, children } of below(tops).toReversed()) {
    trees[place] = Object.freeze({ row: facts.row, children: treesOf(children) });
  }
  return treesOf(tops);
}

/** The tree of a pid, wherever in the forest it stands. */
export function findTree(forest: readonly ProcessTree[], pid: number): ProcessTree | undefined {
  const stack = [...forest];
  for (let tree = stack.pop(); tree !== undefined; tree = stack.pop()) {
    if (tree.row.pid === pid) return tree;
    for (const child of tree.children) stack.push(child);
  }
  return undefined;
}

/** What may be missing from the descendants of a process. */
export type DescendantsGap = "root-missing" | "root-exited" | "root-reused" | "root-unknown" | "undecided";

export interface Descendants {
  /** Each is proved to descend from the root. Deepest first: nobody stands after an ancestor of theirs. */
  readonly processes: readonly ProcessSnapshot[];
  /** Those that may descend from the root or not, in ascending order of pid. */
  readonly undecided: readonly ProcessSnapshot[];
  /** Every row that descends from the root is in `processes`. */
  readonly complete: boolean;
  /**
   * Why it is not complete; absent if it is.
   *
   * - `root-missing`: the root has no row. What it was the parent of has other parents now.
   * - `root-exited`: the root is a zombie; the same.
   * - `root-reused`: its pid is another process's; the same.
   * - `root-unknown`: the row of its pid does not say whether it is the root.
   * - `undecided`: there are undecided rows.
   */
  readonly gap?: DescendantsGap;
}

/**
 * The descendants of a process, without itself.
 *
 * A row is undecided if it may have been born after the root, and the way up from it ends before an answer: at a
 * row without a parent or a birth, at a parent without a row, at one that was born later (the number of a dead
 * parent is another process's now), or in a circle.
 *
 * @throws {ProcSafeError} `invalid-argument` for what are no rows of one census, and for what is no identity.
 */
export function descendantsOf(rows: readonly ProcessSnapshot[], root: ProcessIdentity): Descendants {
  const all = relate(checkRows(rows));
  const identity = checkIdentity(root);
  const top = all.find(({ facts }) => facts.pid === identity.pid);
  const lost = whyLost(top?.facts, identity);
  if (top === undefined || lost !== undefined) return describe<DescendantsGap>([], [], `root-${lost ?? "missing"}`);
  if (isZombie(top.facts)) return describe([], [], "root-exited");
  const processes = below([top]).slice(1).toReversed();
  const above = topOf(top);
  const undecided = below(all.filter((kin) => kin !== above && mayBeBelow(kin, top))).sort((a, b) => a.place - b.place);
  return describe(factsOf(processes), factsOf(undecided), undecided.length > 0 ? "undecided" : undefined);
}

/** Why the row of a pid is not the process of an identity; `undefined` if it is. */
function whyLost(found: RowFacts | undefined, identity: ProcessIdentity): "missing" | "reused" | "unknown" | undefined {
  if (found === undefined) return "missing";
  if (found.birth === undefined) return "unknown";
  const comparison = compare(identity, checkIdentity(found.identity));
  if (comparison === "same") return undefined;
  return comparison === "different" ? "reused" : "unknown";
}

function isZombie({ identity }: RowFacts): boolean {
  return checkIdentity(identity).exited;
}

interface Answer<Gap> {
  readonly processes: readonly ProcessSnapshot[];
  readonly undecided: readonly ProcessSnapshot[];
  readonly complete: boolean;
  readonly gap?: Gap;
}

function describe<Gap>(processes: readonly RowFacts[], undecided: readonly RowFacts[], gap: Gap | undefined): Answer<Gap> {
  return Object.freeze({
    processes: Object.freeze(processes.map(({ row }) => row)),
    undecided: Object.freeze(undecided.map(({ row }) => row)),
    complete: gap === undefined,
    ...(gap !== undefined && { gap }),
  });
}

const factsOf = (some: readonly Kin[]): RowFacts[] => some.map(({ facts }) => facts);

/** Whether a row that has no proved parent may descend from the process of another row. */
function mayBeBelow({ facts, parent }: Kin, root: Kin): boolean {
  if (parent !== undefined || facts.parentPid === 0) return false;
  return facts.birth === undefined || orderOfBirths(facts.birth, root.facts.birth!) >= 0;
}

function topOf(kin: Kin): Kin {
  let top = kin;
  while (top.parent !== undefined) top = top.parent;
  return top;
}

/** These and all below them, level by level. */
function below(tops: readonly Kin[]): Kin[] {
  const found = [...tops];
  for (let index = 0; index < found.length; index++) {
    for (const child of found[index]!.children) found.push(child);
  }
  return found;
}

/** What may be missing from the members of a group or session. */
export type MembersGap = "member-missing" | "member-reused" | "member-unknown" | "undecided";

/** The rows of a process group or session. */
export interface Members {
  /** In ascending order of pid. */
  readonly processes: readonly ProcessSnapshot[];
  /** Those that may be members or not, in ascending order of pid. */
  readonly undecided: readonly ProcessSnapshot[];
  /** Every row of a member is in `processes`. */
  readonly complete: boolean;
  /**
   * Why it is not complete; absent if it is.
   *
   * - `member-missing`: the process of the identity has no row. A group that it led may go on without it: rows with
   *   its number are undecided, since the number may by now be another group's.
   * - `member-reused`: its pid is another process's. A group that it led has no member then.
   * - `member-unknown`: the row of its pid does not say whether it is the process, or in which group it is.
   * - `undecided`: there are undecided rows.
   */
  readonly gap?: MembersGap;
}

/**
 * The members of a process group: of the one that a process is in, by the identity of its leader or of any other
 * member; or of a number. The number is the pid of the process that made the group: once that has ended and no
 * member is left, it may become another group's, so a number that was kept may name strangers.
 *
 * Where no row has a group, as on Windows, all rows are undecided.
 *
 * @throws {ProcSafeError} `invalid-argument` for what are no rows of one census, and for what is neither an identity
 *   nor a pid.
 */
export function membersOfGroup(rows: readonly ProcessSnapshot[], group: ProcessIdentity | number): Members {
  return membersOf(rows, group, "processGroupId");
}

/**
 * The members of a session, as of a group. Only the rows of Linux have sessions.
 *
 * @throws {ProcSafeError} `invalid-argument` for what are no rows of one census, and for what is neither an identity
 *   nor a pid.
 */
export function membersOfSession(rows: readonly ProcessSnapshot[], session: ProcessIdentity | number): Members {
  return membersOf(rows, session, "sessionId");
}

type Kind = "processGroupId" | "sessionId";

function membersOf(rows: readonly ProcessSnapshot[], which: ProcessIdentity | number, kind: Kind): Members {
  const all = checkRows(rows);
  if (typeof which === "number") return members(all, kind, checkPid(which));
  const identity = checkIdentity(which);
  const found = all.find(({ pid }) => pid === identity.pid);
  const lost = whyLost(found, identity);
  const id = found?.[kind];
  if (lost === undefined && id !== undefined) return members(all, kind, id);
  const mayGoOn = (facts: RowFacts): boolean => lost !== "reused" && facts[kind] === identity.pid;
  const undecided = all.filter((facts) => mayGoOn(facts) || isOpen(facts, kind));
  return describe<MembersGap>([], undecided, `member-${lost ?? "unknown"}`);
}

function members(all: readonly RowFacts[], kind: Kind, id: number): Members {
  const told = all.some((facts) => facts[kind] !== undefined);
  const undecided = told ? all.filter((facts) => isOpen(facts, kind)) : all;
  return describe(all.filter((facts) => facts[kind] === id), undecided, undecided.length > 0 ? "undecided" : undefined);
}

/** A row with a parent but without a group is of a kernel thread, or the group is outside the namespace. */
function isOpen(facts: RowFacts, kind: Kind): boolean {
  return facts[kind] === undefined && facts.parentPid === undefined;
}

/** Finds the proved parent of each row. Rows are in ascending order of pid, and so are children. */
function relate(rows: readonly RowFacts[]): Kin[] {
  const all = rows.map((facts, place): Kin => ({ facts, place, parent: undefined, children: NONE }));
  const byPid = new Map<number, Kin>();
  for (const kin of all) byPid.set(kin.facts.pid, kin);
  for (const kin of all) {
    const { parentPid } = kin.facts;
    const named = parentPid === undefined ? undefined : byPid.get(parentPid);
    if (named !== undefined && mayBeParent(named.facts, kin.facts)) kin.parent = named;
  }
  for (const kin of circles(all)) kin.parent = undefined;
  for (const kin of all) if (kin.parent !== undefined) adopt(kin.parent, kin);
  return all;
}

function adopt(parent: Kin, child: Kin): void {
  if (parent.children === NONE) parent.children = [child];
  else (parent.children as Kin[]).push(child);
}

/** Births tie within a tick; then the child's word stands. */
function mayBeParent(parent: RowFacts, child: RowFacts): boolean {
  return parent.birth !== undefined && child.birth !== undefined && orderOfBirths(parent.birth, child.birth) <= 0;
}

/**
 * Rows that name each other in a circle, which is possible where their births tie: they were read at different
 * instants, and nobody knows which of them errs.
 */
function circles(all: readonly Kin[]): Kin[] {
  const found: Kin[] = [];
  const walks = new Int32Array(all.length).fill(-1); // of each row, where the walk that met it first began
  for (const { place } of all) {
    let kin: Kin | undefined = all[place];
    for (; kin !== undefined && walks[kin.place] === -1; kin = kin.parent) walks[kin.place] = place;
    if (kin === undefined || walks[kin.place] !== place) continue;
    const first = kin;
    do {
      found.push(kin);
      kin = kin.parent!;
    } while (kin !== first);
  }
  return found;
}
