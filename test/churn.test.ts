// Trees while processes are born and end: in worlds whose every instant is remembered, and on real processes.

import { expect, test } from "vitest";
import { descendantsOf, listProcesses, readProcessIdentity } from "proc-safe";
import type { ProcessIdentity, ProcessSnapshot } from "proc-safe";
import { start } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { random } from "./support/world.ts";

interface Living {
  readonly pid: number;
  readonly serial: number;
  /** Its parent's serial. */
  parent: number;
  readonly adopts: boolean;
  /** The kernel refuses to describe it. */
  readonly refused: boolean;
}

/**
 * Processes that are born and end between any two reads. Numbers are given away in turn, so that none comes round
 * within one census. Children of the dead fall to the nearest ancestor that adopts, as on Linux.
 */
class Host {
  readonly #living = new Map<number, Living>();
  readonly #byPid = new Map<number, Living>();
  readonly #random: () => number;
  readonly #births: number;
  readonly #refuses: boolean;
  #serial = 0;
  #pid = 0;
  /** What was true at each instant since the last census began: the parents of the living. */
  instants: Map<number, number>[] = [];

  constructor(seed: number, size: number, birthsInTick: number, refuses: boolean) {
    this.#random = random(seed);
    this.#births = birthsInTick;
    this.#refuses = refuses;
    while (this.#living.size < size) this.#bear();
  }

  get pids(): number[] {
    return [...this.#byPid.keys()].sort((a, b) => a - b);
  }

  serialOf(pid: number): number | undefined {
    return this.#byPid.get(pid)?.serial;
  }

  change(): void {
    if (this.#random() < 0.5) this.#bear();
    else this.#end();
    this.remember();
  }

  remember(): void {
    this.instants.push(new Map([...this.#living].map(([serial, { parent }]) => [serial, parent])));
  }

  read(pid: number): ProcessSnapshot | undefined {
    const found = this.#byPid.get(pid);
    if (found === undefined) return undefined;
    if (found.refused) return { pid, owner: "unknown" };
    const parentPid = this.#living.get(found.parent)?.pid ?? 0;
    return { pid, owner: "same", parentPid, identity: this.#identity(found, parentPid) };
  }

  #identity({ pid, serial }: Living, parentPid: number): ProcessIdentity {
    const born = Math.floor(serial / this.#births) * 10_000;
    return { pid, parentPid, startTimeMicros: born, startTimeSinceBootMicros: born, startTimeResolutionMicros: 10_000, exited: false };
  }

  #pick(): Living {
    const all = [...this.#living.values()];
    // Often of the youngest, so that the tree is deep.
    return this.#random() < 0.4 ? all.at(-1)! : all[Math.floor(this.#random() * all.length)]!;
  }

  #bear(): void {
    const parent = this.#serial === 0 ? 0 : this.#pick().serial;
    do this.#pid = (this.#pid % 5_000) + 1;
    while (this.#byPid.has(this.#pid));
    const one = { pid: this.#pid, serial: ++this.#serial, parent, adopts: this.#random() < 0.2, refused: this.#refuses && this.#random() < 0.02 };
    this.#living.set(one.serial, one);
    this.#byPid.set(one.pid, one);
  }

  #end(): void {
    const dead = this.#pick();
    if (dead.serial === 1) return;
    let heir = this.#living.get(dead.parent)!;
    while (!heir.adopts && heir.serial !== 1) heir = this.#living.get(heir.parent)!;
    for (const child of this.#living.values()) if (child.parent === dead.serial) child.parent = heir.serial;
    this.#living.delete(dead.serial);
    this.#byPid.delete(dead.pid);
  }

  /** As the census does: the list, each row, and once more the rows whose parent has none. */
  census(changes: () => number): ProcessSnapshot[] {
    this.instants = [];
    this.remember();
    const read = (pid: number): ProcessSnapshot | undefined => {
      for (let left = changes(); left > 0; left--) this.change();
      return this.read(pid);
    };
    const rows = new Map<number, ProcessSnapshot>();
    for (const pid of this.pids) {
      const row = read(pid);
      if (row !== undefined) rows.set(pid, row);
    }
    for (const { pid, parentPid = 0 } of rows.values()) {
      if (parentPid === 0 || rows.has(parentPid)) continue;
      const again = read(pid);
      if (again === undefined) rows.delete(pid);
      else rows.set(pid, again);
    }
    return [...rows.values()];
  }
}

/** Whether one descends from another at an instant. */
function isBelow(at: ReadonlyMap<number, number>, serial: number, root: number): boolean {
  for (let one = at.get(serial); one !== undefined; one = at.get(one)) if (one === root) return true;
  return false;
}

test("a census of a changing host names no stranger below a root, and misses none that was there all the while", () => {
  let [complete, named, gaps] = [0, 0, 0];
  for (let seed = 0; seed < 400; seed++) {
    const host = new Host(seed, 20 + (seed % 60), 1 + (seed % 5), seed % 2 === 0);
    const rand = random(seed + 1_000);
    const pace = [0, 1, 3][seed % 3]!;
    for (let turn = 0; turn < 4; turn++) {
      const root = host.pids[Math.floor(rand() * host.pids.length)]!;
      const serial = host.serialOf(root)!;
      const { identity } = host.read(root)!;
      if (identity === undefined) continue;
      const serials = new Map<number, number>(); // of each pid at any instant: none has two within a census
      const rows = host.census(() => {
        for (const pid of host.pids) serials.set(pid, host.serialOf(pid)!);
        return Math.floor(rand() * (pace + 1));
      });
      for (const pid of host.pids) serials.set(pid, host.serialOf(pid)!);
      const answer = descendantsOf(rows, identity);
      const names = new Set(answer.processes.map(({ pid }) => serials.get(pid)!));
      for (const one of names) expect(host.instants.some((at) => isBelow(at, one, serial)), `${seed} ${one}`).toBe(true);
      const steady = [...host.instants[0]!.keys()].filter((one) => host.instants.every((at) => isBelow(at, one, serial)));
      if (answer.complete) for (const one of steady) expect(names, `${seed} ${one}`).toContain(one);
      complete += Number(answer.complete);
      gaps += Number(answer.gap === "undecided");
      named += names.size;
    }
  }
  // It says something of many, and is not always sure.
  expect(named).toBeGreaterThan(3_000);
  expect(complete).toBeGreaterThan(500);
  expect(gaps).toBeGreaterThan(50);
});

/** By the definition, slowly, of rows that stand at their pids: up by the named parents, if they were born no later. */
function slowly(rows: readonly ProcessSnapshot[], root: ProcessIdentity): number[] {
  const born = ({ identity }: ProcessSnapshot): number => identity!.startTimeSinceBootMicros!;
  const parentOf = (row: ProcessSnapshot): ProcessSnapshot | undefined => {
    const named = rows[row.parentPid! - 1];
    return named !== undefined && born(named) <= born(row) ? named : undefined;
  };
  return rows.filter((row) => {
    for (let at = parentOf(row); at !== undefined; at = parentOf(at)) if (at.pid === root.pid) return true;
    return false;
  }).map(({ pid }) => pid);
}

test("10,000 rows of a changing host, in any order, have the descendants that a slow look finds", () => {
  const size = 10_000;
  const rand = random(7);
  // Rows at random instants: parents that are gone, and numbers that are others' by now.
  const rows = Array.from({ length: size }, (_, index): ProcessSnapshot => {
    const pid = index + 1;
    const parentPid = Math.floor(rand() * (rand() < 0.9 ? pid : size + 100));
    const born = (rand() < 0.95 ? pid : Math.floor(rand() * size)) * 10_000;
    const identity = { pid, parentPid, startTimeMicros: born, startTimeSinceBootMicros: born, startTimeResolutionMicros: 10_000, exited: false };
    return { pid, owner: "same", parentPid, identity };
  });
  const shuffled = rows.map((row) => [rand(), row] as const).sort(([a], [b]) => a - b).map(([, row]) => row);
  for (const root of [rows[0]!, rows[1]!, rows[9]!, rows[400]!]) {
    const found = descendantsOf(shuffled, root.identity!).processes.map(({ pid }) => pid);
    expect(found.toSorted((a, b) => a - b)).toEqual(slowly(rows, root.identity!));
    expect(new Set(found).size).toBe(found.length);
  }
});

nativeTest("400 real processes that are born and end: no stranger, and nobody missing where nobody is", ["linux"], async () => {
  const churn = start("churn", ["150", "250"]);
  try {
    const { steady } = (await churn.next()) as { steady: number[] };
    const leader = listProcesses({ pids: [steady[0]!] })[0]!.sessionId!;
    const root = readProcessIdentity(leader)!;
    const deep = readProcessIdentity(steady[0]!)!;
    const key = ({ pid, identity }: ProcessSnapshot): string => `${pid} ${identity?.startTimeSinceBootMicros}`;
    let [looks, complete, members] = [0, 0, new Set<string>()];
    let before: ProcessSnapshot[] = [];
    let pending: { names: Set<string>; before: ProcessSnapshot[] } | undefined;
    for (const until = Date.now() + 100_000; complete < 40; looks++) {
      expect(Date.now(), `${complete} of ${looks} looks were complete`).toBeLessThan(until);
      const rows = listProcesses();
      const own = rows.filter(({ sessionId, pid }) => sessionId === leader && pid !== leader);
      // Nobody leaves the session and no stranger enters it, so it says who descends from its leader.
      const { processes, complete: whole } = descendantsOf(rows, root);
      for (const { sessionId } of processes) expect(sessionId).toBe(leader);
      for (const { sessionId, pid } of descendantsOf(rows, deep).processes) expect([sessionId, pid === leader]).toEqual([leader, false]);
      // Who was there before and after a complete look was there at it.
      if (pending !== undefined) {
        const now = new Set(own.map(key));
        for (const row of pending.before) if (now.has(key(row))) expect(pending.names).toContain(key(row));
      }
      pending = whole ? { names: new Set(processes.map(key)), before } : undefined;
      if (whole) {
        complete++;
        const pids = new Set(processes.map(({ pid }) => pid));
        expect(steady.filter((pid) => !pids.has(pid))).toEqual([]);
      }
      for (const row of own) members.add(key(row));
      before = own;
    }
    churn.write("check\n");
    expect(await churn.next()).toEqual({ still: true });
    // It was churn: more processes than were ever there at once.
    expect(members.size).toBeGreaterThan(600);
  } finally {
    await churn.end();
  }
});
