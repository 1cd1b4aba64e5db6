// A small world of processes that are born, orphaned, reaped and whose pids are used again between any two
// reads, with a memory of every instant, so that an answer can be held against what was.

import { ProcSafeError } from "proc-safe";
import type { ProcessAncestry, ProcessIdentity } from "proc-safe";

/** How a system treats the children of the dead, and what its identities say. */
export type Kind = "linux" | "darwin" | "windows";

interface Living {
  readonly pid: number;
  /** Of this process alone; later births have greater ones. */
  readonly serial: number;
  /** The serial of its parent; 0 for none, or one that has ended where nobody adopts. */
  readonly parent: number;
  /** The pid that it names as its parent's. */
  readonly names: number;
  readonly adopts: boolean;
  readonly hidden: boolean;
}

type Instant = ReadonlyMap<number, Living>;

const PIDS = [1, 2, 3, 4, 5, 6, 7];
/** Births in one tick of the clock. */
const TICK = 4;

export function random(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    const mixed = Math.imul(state ^ (state >>> 13), 0x297a2d39);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}

export class World {
  readonly instants: Instant[] = [new Map([[1, { pid: 1, serial: 1, parent: 0, names: 0, adopts: true, hidden: false }]])];
  readonly #kind: Kind;
  readonly #random: () => number;
  readonly #hides: boolean;
  #serial = 1;

  constructor(kind: Kind, seed: number, hides = false) {
    this.#kind = kind;
    this.#random = random(seed);
    this.#hides = hides;
    for (let step = 0; step < 8; step++) this.#bear(this.#next());
  }

  get now(): Instant {
    return this.instants.at(-1)!;
  }

  /** A read with up to `most` changes before it. */
  read(pid: number, most: number): ProcessIdentity | null {
    for (let left = Math.floor(this.#random() * (most + 1)); left > 0; left--) this.#change();
    const found = this.now.get(pid);
    if (found === undefined) return null;
    if (found.hidden) throw new ProcSafeError("access-denied", "hidden");
    return this.#identity(found);
  }

  #identity({ pid, serial, names }: Living): ProcessIdentity {
    const tick = Math.floor(serial / TICK) * 10_000;
    const common = { pid, parentPid: names, startTimeResolutionMicros: 1, exited: false };
    // The order of unique ids says nothing on Linux; the wall clock there was set back.
    if (this.#kind === "linux") return { ...common, startTimeMicros: 1e9 - tick, startTimeSinceBootMicros: tick, uniqueId: String((serial * 7919) % 999_983) };
    if (this.#kind === "darwin") return { ...common, startTimeMicros: 1e9 - serial, uniqueId: String(serial) };
    return { ...common, startTimeMicros: serial };
  }

  #change(): void {
    const next = this.#next();
    if (this.#random() < 0.5) this.#bear(next);
    else this.#end(next);
  }

  #next(): Map<number, Living> {
    const next = new Map(this.now);
    this.instants.push(next);
    return next;
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }

  #bear(next: Map<number, Living>): void {
    const pid = this.#pick(PIDS.filter((one) => !next.has(one)));
    // Often of the youngest: worlds that are only wide say little of chains.
    const parent = this.#random() < 0.6 ? [...next.values()].reduce((a, b) => (a.serial > b.serial ? a : b)) : this.#pick([...next.values()]);
    if (pid === undefined || parent === undefined) return;
    const adopts = this.#random() < 0.3;
    const hidden = this.#hides && this.#random() < 0.2;
    next.set(pid, { pid, serial: ++this.#serial, parent: parent.serial, names: parent.pid, adopts, hidden });
  }

  #end(next: Map<number, Living>): void {
    const dead = this.#pick([...next.values()].filter(({ pid }) => pid !== 1));
    if (dead === undefined) return;
    const heir = this.#kind === "windows" ? undefined : this.#heir(next, dead);
    next.delete(dead.pid);
    for (const child of next.values()) {
      if (child.parent !== dead.serial) continue;
      next.set(child.pid, { ...child, parent: heir?.serial ?? 0, names: heir?.pid ?? child.names });
    }
  }

  /** The nearest ancestor that adopts; on Darwin the first process does. */
  #heir(now: Instant, dead: Living): Living {
    let heir = dead;
    do heir = now.get(heir.names) ?? now.get(1)!;
    while (heir.pid !== 1 && (this.#kind === "darwin" || !heir.adopts));
    return heir;
  }

  /** Whether an identity is of a process that lives at an instant. */
  #finds(at: Instant, identity: ProcessIdentity): Living | undefined {
    const found = at.get(identity.pid);
    return found !== undefined && JSON.stringify(this.#identity({ ...found, names: identity.parentPid })) === JSON.stringify(identity) ? found : undefined;
  }

  /** Whether a whole answer was true at one of the instants since a read began. */
  held({ chain, stoppedBy }: ProcessAncestry, since: number, bounds: { maxDepth: number; throughPid: number | undefined }): boolean {
    return this.instants.slice(since).some((at) => {
      const found = chain.map((identity) => this.#finds(at, identity));
      if (found.includes(undefined)) return false;
      const living = found as Living[];
      const edges = living.slice(1).every((parent, index) => living[index]!.parent === parent.serial && living[index]!.names === parent.pid);
      const top = living.at(-1)!;
      const named = at.get(top.names);
      const stops = {
        root: top.names === 0,
        "through-pid": top.pid === bounds.throughPid,
        "missing-parent": this.#kind === "windows" && top.parent === 0 && top.names !== 0 && named === undefined,
        "recycled-parent": this.#kind === "windows" && top.parent === 0 && named !== undefined && named.serial > top.serial,
        "unreadable-parent": named?.hidden === true,
        "max-depth": living.length === bounds.maxDepth && top.names !== 0,
        cycle: false,
      };
      return edges && stops[stoppedBy];
    });
  }

  /** The chain above a pid as it is now. */
  truth(pid: number): number[] {
    const chain: number[] = [];
    for (let at = this.now.get(pid); at !== undefined; ) {
      chain.push(at.pid);
      const { parent } = at;
      at = [...this.now.values()].find(({ serial }) => serial === parent);
    }
    return chain;
  }
}
