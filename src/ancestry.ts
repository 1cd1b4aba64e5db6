// The walk from a process to its ancestors, over any reader of identities. It decides nothing but what is
// an edge, so that it can be tested in worlds that change between any two reads.

import { birthOf, compare, orderOfBirths } from "./births.js";
import { ProcSafeError } from "./errors.js";
import type { AncestryStop, ProcessAncestry, ProcessIdentity } from "./types.js";

/** One look at a pid; `null` for a proven absence, and `access-denied` is thrown for a refusal. */
export type ReadIdentity = (pid: number) => ProcessIdentity | null;

export interface AncestryBounds {
  readonly maxDepth: number;
  readonly throughPid: number | undefined;
}

/**
 * On Linux a failed try means that an ancestor ended during it, and its children only ever fall to those that
 * were ancestors before or to the namespace's init: so tries run out only where the pid itself is recycled.
 */
const TRIES = 64;

const INCOMPLETE: readonly AncestryStop[] = ["unreadable-parent", "max-depth", "cycle"];

/**
 * Every process is read on the way up, and, after the last of these reads, once more. Where each is still the
 * same and still names the same parent, the whole chain stood at the instant between: a pid that a child names
 * all the while is its parent's, which cannot have been recycled meanwhile. (A child that falls to another
 * parent falls to one that lived beside the dead one, and so has another pid.) Where a system leaves the pid of
 * a dead parent in its children, as Windows does, the order of births tells the stranger;
 * and an ended parent that a handle still keeps there stays in the chain, as its pid is nobody else's.
 */
export function walkAncestry(read: ReadIdentity, pid: number, bounds: AncestryBounds): ProcessAncestry | null {
  for (let tries = 0; tries < TRIES; tries++) {
    const start = read(pid);
    if (start === null) return null;
    const { chain, stoppedBy } = climb(read, start, bounds);
    if (!chain.every((seen) => stillHolds(read, seen))) continue;
    return Object.freeze({ chain: Object.freeze(chain), complete: !INCOMPLETE.includes(stoppedBy), stoppedBy });
  }
  throw new ProcSafeError("incomplete", `process ${pid} or its ancestors changed at every look`, {
    details: { pid, reason: "unstable-pid" },
  });
}

function climb(
  read: ReadIdentity,
  start: ProcessIdentity,
  { maxDepth, throughPid }: AncestryBounds,
): { chain: ProcessIdentity[]; stoppedBy: AncestryStop } {
  const chain = [start];
  const met = new Set([start.pid]); // that such a pid is still the same process is seen when it is read again
  for (let child = start; ; ) {
    const stop = (stoppedBy: AncestryStop) => ({ chain, stoppedBy });
    if (child.pid === throughPid) return stop("through-pid");
    if (child.parentPid === 0) return stop("root");
    if (chain.length >= maxDepth) return stop("max-depth");
    const parent = unlessRefused(() => read(child.parentPid));
    if (parent === undefined) return stop("unreadable-parent");
    if (parent === null) return stop("missing-parent");
    if (orderOfBirths(birthOf(parent), birthOf(child)) > 0) return stop("recycled-parent");
    if (met.has(parent.pid)) return stop("cycle");
    chain.push(parent);
    met.add(parent.pid);
    child = parent;
  }
}

function stillHolds(read: ReadIdentity, seen: ProcessIdentity): boolean {
  const now = unlessRefused(() => read(seen.pid));
  return now !== null && now !== undefined && compare(seen, now) === "same" && now.parentPid === seen.parentPid;
}

/** `undefined` in place of an `access-denied`. */
export function unlessRefused<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ProcSafeError && error.code === "access-denied") return undefined;
    throw error;
  }
}
