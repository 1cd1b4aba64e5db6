// Ancestors: in worlds that change between any two reads, and on real processes.

import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { listProcesses, ProcSafeError, readProcessAncestry, readProcessIdentity } from "proc-safe";
import type { ProcessAncestry, ProcessIdentity } from "proc-safe";
import { checkAncestryOptions } from "../dist/arguments.js";
import { walkAncestry } from "../dist/ancestry.js";
import { start, whileHeld } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { inNamespace, scriptValue, stagedPackage } from "./support/node.ts";
import { World } from "./support/world.ts";
import type { Kind } from "./support/world.ts";

const FREE = { maxDepth: 1024, throughPid: undefined };

function of(pid: number, parentPid: number, born = 0, more: object = {}): ProcessIdentity {
  return { pid, parentPid, startTimeMicros: born, startTimeResolutionMicros: 1, startTimeSinceBootMicros: born, exited: false, ...more };
}

type Look = readonly [pid: number, found: ProcessIdentity | null | "refused"];

/** A world in which the next looks go like this, and there are no more. */
function script(looks: readonly Look[]): (pid: number) => ProcessIdentity | null {
  const left = [...looks];
  return (pid) => {
    const [expected, found] = left.shift() ?? [];
    expect(pid, `look ${looks.length - left.length}`).toBe(expected);
    if (found === "refused") throw new ProcSafeError("access-denied", "refused", { details: { pid } });
    if (left.length === 0) finished = true;
    return found ?? null;
  };
}
let finished = false;

function walk(looks: readonly Look[], bounds: Partial<typeof FREE> & { throughPid?: number } = {}): unknown {
  finished = false;
  const answer = walkAncestry(script(looks), looks[0]![0], { ...FREE, ...bounds });
  expect(finished, "all looks were needed").toBe(true);
  return answer && [answer.chain.map(({ pid }) => pid), answer.complete, answer.stoppedBy];
}

const still = (...identities: readonly ProcessIdentity[]): Look[] => identities.map((identity) => [identity.pid, identity]);
const ROOT = of(1, 0);
const SHELL = of(20, 1, 5);
const CHILD = of(30, 20, 6);

const STEADY: readonly (readonly [string, readonly Look[], object, unknown])[] = [
  ["a root", [...still(ROOT), ...still(ROOT)], {}, [[1], true, "root"]],
  ["a chain", [...still(CHILD, SHELL, ROOT), ...still(CHILD, SHELL, ROOT)], {}, [[30, 20, 1], true, "root"]],
  ["through an ancestor", [...still(CHILD, SHELL), ...still(CHILD, SHELL)], { throughPid: 20 }, [[30, 20], true, "through-pid"]],
  ["through itself", [...still(CHILD), ...still(CHILD)], { throughPid: 30 }, [[30], true, "through-pid"]],
  ["through the root", [...still(SHELL, ROOT), ...still(SHELL, ROOT)], { throughPid: 1 }, [[20, 1], true, "through-pid"]],
  ["through a stranger", [...still(SHELL, ROOT), ...still(SHELL, ROOT)], { throughPid: 99 }, [[20, 1], true, "root"]],
  ["a depth", [...still(CHILD, SHELL), ...still(CHILD, SHELL)], { maxDepth: 2 }, [[30, 20], false, "max-depth"]],
  ["a depth that just suffices", [...still(SHELL, ROOT), ...still(SHELL, ROOT)], { maxDepth: 2 }, [[20, 1], true, "root"]],
  ["a depth that just suffices for an ancestor", [...still(CHILD, SHELL), ...still(CHILD, SHELL)], { maxDepth: 2, throughPid: 20 }, [[30, 20], true, "through-pid"]],
  ["a missing parent", [...still(CHILD), [20, null], ...still(CHILD)], {}, [[30], true, "missing-parent"]],
  ["a recycled parent", [...still(CHILD, of(20, 1, 7)), ...still(CHILD)], {}, [[30], true, "recycled-parent"]],
  ["a parent of the same tick", [...still(CHILD, of(20, 0, 6)), ...still(CHILD, of(20, 0, 6))], {}, [[30, 20], true, "root"]],
  ["an unreadable parent", [...still(CHILD), [20, "refused"], ...still(CHILD)], {}, [[30], false, "unreadable-parent"]],
  ["itself as its parent", [...still(of(9, 9), of(9, 9)), ...still(of(9, 9))], {}, [[9], false, "cycle"]],
  ["a cycle in one tick", [...still(of(9, 8), of(8, 9), of(9, 8)), ...still(of(9, 8), of(8, 9))], {}, [[9, 8], false, "cycle"]],
  ["nobody", [[30, null]], {}, null],
];

for (const [what, looks, bounds, answer] of STEADY) {
  test(`steady: ${what}`, () => expect(walk(looks, bounds)).toEqual(answer));
}

const again = [...still(CHILD, SHELL, ROOT), ...still(CHILD, SHELL, ROOT)];
const ADOPTED = of(30, 1, 6);

const RACES: readonly (readonly [string, readonly Look[], unknown])[] = [
  ["it ends before it is confirmed", [...still(CHILD, SHELL, ROOT), [30, null], [30, null]], null],
  ["its pid goes to another", [...still(CHILD, SHELL, ROOT), ...still(of(30, 1, 8)), ...still(of(30, 1, 8), ROOT), ...still(of(30, 1, 8), ROOT)], [[30, 1], true, "root"]],
  ["its pid goes to another child of the same parent", [...still(CHILD, SHELL, ROOT), ...still(of(30, 20, 8)), ...still(of(30, 20, 8), SHELL, ROOT), ...still(of(30, 20, 8), SHELL, ROOT)], [[30, 20, 1], true, "root"]],
  ["it is orphaned before its parent is read", [...still(CHILD), [20, null], ...still(ADOPTED), ...still(ADOPTED, ROOT), ...still(ADOPTED, ROOT)], [[30, 1], true, "root"]],
  ["it is orphaned after its parent was read", [...still(CHILD, SHELL, ROOT), ...still(ADOPTED), ...still(ADOPTED, ROOT), ...still(ADOPTED, ROOT)], [[30, 1], true, "root"]],
  ["its parent's pid is another's by then", [...still(CHILD, of(20, 1, 6), ROOT), ...still(ADOPTED), ...still(ADOPTED, ROOT), ...still(ADOPTED, ROOT)], [[30, 1], true, "root"]],
  ["an ancestor falls to another parent", [...still(CHILD, SHELL, ROOT), ...still(CHILD, of(20, 2, 5)), ...again], [[30, 20, 1], true, "root"]],
  ["an ancestor ends", [...still(CHILD, SHELL, ROOT), ...still(CHILD), [20, null], ...again], [[30, 20, 1], true, "root"]],
  ["an ancestor is hidden in between", [...still(CHILD, SHELL, ROOT), ...still(CHILD), [20, "refused"], ...still(CHILD), [20, "refused"], ...still(CHILD)], [[30], false, "unreadable-parent"]],
  ["a pid that comes again is another process", [...still(of(9, 8, 3), of(8, 9, 3), of(9, 0, 2)), ...still(of(9, 0, 2)), ...still(of(9, 0, 2)), ...still(of(9, 0, 2))], [[9], true, "root"]],
];

for (const [what, looks, answer] of RACES) {
  test(`race: ${what}`, () => expect(walk(looks)).toEqual(answer));
}

test("a refusal of the asked process is its error, and so is every other failure", () => {
  expect(() => walk([[30, "refused"]])).toThrow(expect.objectContaining({ code: "access-denied" }) as Error);
  const broken = new ProcSafeError("operation-failed", "broken");
  const reader = (pid: number): ProcessIdentity => {
    if (pid === 20) throw broken;
    return CHILD;
  };
  expect(() => walkAncestry(reader, 30, FREE)).toThrow(broken);
});

test("a pid that changes hands at every look is incomplete, and the walk ends", () => {
  let births = 0;
  const error = expect.objectContaining({ code: "incomplete", details: { pid: 30, reason: "unstable-pid" } }) as Error;
  expect(() => walkAncestry((pid) => (pid === 1 ? ROOT : of(30, 1, ++births)), 30, FREE)).toThrow(error);
  expect(births).toBeLessThan(1000);
});

const WORLDS = Number(process.env["PROC_SAFE_WORLDS"] ?? 4_000);

for (const kind of ["linux", "darwin", "windows"] satisfies Kind[]) {
  test(`random worlds of ${kind}: every answer was true at one instant of the call`, () => {
    const counts: Record<string, number> = {};
    let deep = 0;
    for (let seed = 0; seed < WORLDS; seed++) {
      const world = new World(kind, seed, seed % 4 === 0);
      const pid = 1 + (seed % 7);
      const bounds = { maxDepth: seed % 5 === 0 ? 2 : 1024, throughPid: seed % 3 === 0 ? 1 + (seed % 4) : undefined };
      const since = world.instants.length - 1;
      const answer = attempt(() => walkAncestry((asked) => world.read(asked, seed % 3), pid, bounds));
      const what = typeof answer === "string" ? answer : (answer?.stoppedBy ?? "absent");
      counts[what] = (counts[what] ?? 0) + 1;
      const seen = world.instants.slice(since);
      if (answer === null) expect(seen.some((at) => !at.has(pid)), `seed ${seed}`).toBe(true);
      else if (answer === "access-denied") expect(seen.some((at) => at.get(pid)?.hidden), `seed ${seed}`).toBe(true);
      else if (typeof answer === "string") expect(answer).toBe("incomplete");
      else {
        expect(world.held(answer, since, bounds), `seed ${seed}: ${JSON.stringify(answer)}`).toBe(true);
        if (answer.chain.length > 2) deep++;
      }
    }
    expect(deep).toBeGreaterThan(WORLDS / 20);
    expect(counts["incomplete"] ?? 0).toBeLessThan(WORLDS / 100);
    const stops = ["root", "through-pid", "max-depth", "unreadable-parent", "absent", "access-denied"];
    if (kind === "windows") stops.push("missing-parent", "recycled-parent");
    for (const stop of stops) expect(counts[stop], stop).toBeGreaterThan(0);
  });
}

function attempt(call: () => ProcessAncestry | null): ProcessAncestry | null | string {
  try {
    return call();
  } catch (error) {
    if (error instanceof ProcSafeError) return error.code;
    throw error;
  }
}

test("a world that stands still is told as it is", () => {
  for (let seed = 0; seed < 500; seed++) {
    const world = new World("linux", seed);
    for (const pid of world.now.keys()) {
      const answer = walkAncestry((asked) => world.read(asked, 0), pid, FREE);
      expect(answer?.chain.map((identity) => identity.pid)).toEqual(world.truth(pid));
    }
  }
});

const invalid = expect.objectContaining({ name: "ProcSafeError", code: "invalid-argument" }) as Error;

const BAD_OPTIONS: readonly (readonly [string, unknown])[] = [
  ["null", null],
  ["a number", 5],
  ["an array", []],
  ["an unknown name", { depth: 1 }],
  ["no depth", { maxDepth: 0 }],
  ["a negative depth", { maxDepth: -1 }],
  ["a broken depth", { maxDepth: 1.5 }],
  ["an endless depth", { maxDepth: Infinity }],
  ["a depth that is null", { maxDepth: null }],
  ["a depth that is text", { maxDepth: "3" }],
  ["a negative pid", { throughPid: -1 }],
  ["a pid that is text", { throughPid: "1" }],
  ["a pid that is null", { throughPid: null }],
  ["a pid too great", { throughPid: 2 ** 32 }],
  ["a getter that throws", { get maxDepth(): number { throw new Error("getter"); } }],
  ["an instance of a class", new (class { get maxDepth(): number { return 1; } })()],
];

for (const [what, options] of BAD_OPTIONS) {
  test(`options: ${what}`, () => {
    expect(() => readProcessAncestry(process.pid, options as never)).toThrow(invalid);
  });
}

test("without a bound there is one", () => {
  for (const options of [undefined, {}, { maxDepth: undefined }]) {
    expect(checkAncestryOptions(options)).toEqual({ maxDepth: 1024, throughPid: undefined });
  }
});

test("a wrong pid, and a pid that nobody has", () => {
  for (const pid of [undefined, "1", -1, 1.5, 2 ** 32]) expect(() => readProcessAncestry(pid as never)).toThrow(invalid);
  expect(readProcessAncestry(2 ** 32 - 1)).toBeNull();
});

nativeTest("our own ancestors", ["linux"], () => {
  const { chain, complete, stoppedBy } = readProcessAncestry(process.pid)!;
  expect([complete, stoppedBy]).toEqual([true, "root"]);
  expect(chain[0]).toEqual(readProcessIdentity(process.pid));
  expect(chain[1]?.pid).toBe(process.ppid);
  expect(chain.at(-1)?.parentPid).toBe(0);
  expect(Object.isFrozen(chain)).toBe(true);
  expect(readProcessAncestry(process.pid, { throughPid: undefined, maxDepth: undefined })?.chain).toEqual(chain);
});

async function family(words: readonly string[], look: (pids: readonly number[], tell: (line: string) => Promise<unknown>) => void | Promise<void>): Promise<void> {
  const fixture = start("family", words);
  try {
    const { ready, pids } = (await fixture.next()) as { ready: boolean; pids: number[] };
    expect(ready).toBe(true);
    const tell = (line: string): Promise<unknown> => {
      fixture.write(`${line}\n`);
      return fixture.next();
    };
    await look(pids, tell);
    expect(await tell("check"), "the family did not hold").toEqual({ still: true });
  } finally {
    await fixture.end();
  }
}

const pidsOf = (answer: ProcessAncestry | null): number[] => answer!.chain.map(({ pid }) => pid);

nativeTest("a family, through one of it, and to a depth", ["linux"], () =>
  family(["6"], (pids) => {
    const up = pids.toReversed();
    expect(pidsOf(readProcessAncestry(pids[5]!)).slice(0, 6)).toEqual(up);
    expect(pidsOf(readProcessAncestry(pids[5]!))).toContain(process.pid);
    expect(readProcessAncestry(pids[5]!, { throughPid: pids[2]! })).toMatchObject({ complete: true, stoppedBy: "through-pid", chain: up.slice(0, 4).map((pid) => ({ pid })) });
    expect(readProcessAncestry(pids[5]!, { throughPid: pids[5]! })?.chain).toEqual([readProcessIdentity(pids[5]!)]);
    expect(readProcessAncestry(pids[5]!, { maxDepth: 3 })).toMatchObject({ complete: false, stoppedBy: "max-depth", chain: up.slice(0, 3).map((pid) => ({ pid })) });
    expect(readProcessAncestry(pids[1]!, { throughPid: pids[3]! })?.stoppedBy).toBe("root");
  }),
);

nativeTest("a long chain, to a bound and whole", ["linux"], () =>
  family(["200"], (pids) => {
    expect(readProcessAncestry(pids.at(-1)!, { maxDepth: 150 })).toMatchObject({ complete: false, stoppedBy: "max-depth", chain: { length: 150 } });
    const whole = readProcessAncestry(pids.at(-1)!);
    expect([whole?.stoppedBy, pidsOf(whole).slice(0, 200)]).toEqual(["root", pids.toReversed()]);
  }),
);

nativeTest("an orphan falls to a subreaper, else to the init", ["linux"], async () => {
  await family(["4", "subreaper"], async (pids, tell) => {
    const before = readProcessAncestry(pids[3]!)!;
    expect(await tell("fall 1")).toEqual({ fallen: true });
    const after = readProcessAncestry(pids[3]!)!;
    expect(after.chain.map(({ pid }) => pid)).toEqual(pidsOf(before).filter((pid) => pid !== pids[0] && pid !== pids[1]));
    expect(readProcessAncestry(pids[1]!)).toBeNull();
    expect(readProcessAncestry(pids[0]!)).toMatchObject({ stoppedBy: "root" });
  });
  const lone = `
        import { spawn } from "node:child_process";
    import { once } from "node:events";
    const shell = spawn("sh", ["-c", "sleep 1000 >/dev/null 2>&1 & echo $!; read line"], { stdio: ["pipe", "pipe", "ignore"] });
    const orphan = Number(String((await once(shell.stdout, "data"))[0]));
    const before = procSafe.readProcessAncestry(orphan).chain.map((of) => of.pid);
    shell.stdin.end();
    await once(shell, "exit");
    const after = procSafe.readProcessAncestry(orphan);
    report([before.slice(0, 3).join() === [orphan, shell.pid, process.pid].join(), after.chain.map((of) => of.pid - (of.pid === orphan ? orphan : 0)), after.stoppedBy]);
  `;
  expect(scriptValue(lone, { launcher: inNamespace("", "root") })).toEqual([true, [0, 1], "root"]);
});

nativeTest("a zombie has its parent, and its children have another", ["linux"], () =>
  whileHeld(["zombie"], ({ pid, parent }) => {
    const { chain, complete } = readProcessAncestry(pid)!;
    expect([chain[0]?.exited, chain[1]?.pid, chain[1]?.exited, complete]).toEqual([true, parent, false, true]);
  }),
);

nativeTest("a traced process has its own parent", ["linux"], () =>
  whileHeld(["traced"], ({ pid, parent }) => expect(pidsOf(readProcessAncestry(pid)).slice(0, 2)).toEqual([pid, parent])),
);

nativeTest("while ancestors die, every chain is that of one instant", ["linux"], async () => {
  const changes = { between: 0 };
  const enough = Date.now() + 60_000;
  for (let round = 0; round < 40 || (changes.between < 20 && Date.now() < enough); round++) {
    await family(["24", "subreaper"], async (pids, tell) => {
      const order = Array.from({ length: 23 }, (_, index) => index);
      if (round % 2 === 1) order.sort(() => Math.random() - 0.5);
      const above = pidsOf(readProcessAncestry(pids[0]!)).slice(1);
      // An orphan falls to the subreaper at once, so the chain of the last ends below the lowest of the dead.
      const instants = [0, ...order.map((_, deaths) => Math.max(...order.slice(0, deaths + 1)) + 1)].map((least) =>
        [...pids.slice(least).toReversed(), ...above].join(),
      );
      const fallen = tell(`fall ${order.join(" ")}`);
      const seen: string[] = [];
      while (seen.at(-1) !== instants.at(-1)) {
        const answer = readProcessAncestry(pids[23]!)!;
        expect([answer.complete, answer.stoppedBy]).toEqual([true, "root"]);
        seen.push(pidsOf(answer).join());
      }
      expect(await fallen).toEqual({ fallen: true });
      const places = seen.map((chain) => instants.indexOf(chain));
      expect(places).not.toContain(-1);
      expect(places).toEqual([...places].sort((one, other) => one - other));
      changes.between += new Set(places.filter((place) => place > 0 && place < instants.length - 1)).size;
    });
  }
  expect(changes.between, "chains were seen to change").toBeGreaterThanOrEqual(20);
});

nativeTest("no stranger that has a dead parent's pid is an ancestor", ["linux", "root", "pidfs inodes"], async () => {
  const heirs = start("heirs", []);
  try {
    const { parent, children } = (await heirs.next()) as { parent: number; children: number[] };
    const counts = { own: 0, adopted: 0, absent: 0, incomplete: 0 };
    const births = new Set<string | undefined>();
    const enough = Date.now() + 60_000;
    for (let look = 0; (counts.own < 500 || counts.adopted < 500 || births.size < 300) && Date.now() < enough; look++) {
      const answer = attempt(() => readProcessAncestry(children[look % 2]!));
      if (answer === null) counts.absent++;
      else if (typeof answer === "string") {
        expect(answer).toBe("incomplete");
        counts.incomplete++;
      } else {
        const [child, next] = answer.chain;
        births.add(child?.uniqueId);
        expect([answer.complete, answer.stoppedBy]).toEqual([true, "root"]);
        // The stranger is the next parent, which is born after the child.
        if (next?.pid === parent) expect(BigInt(next.uniqueId!) < BigInt(child!.uniqueId!), JSON.stringify(answer.chain)).toBe(true);
        counts[next?.pid === parent ? "own" : "adopted"]++;
      }
    }
    expect(counts.own).toBeGreaterThanOrEqual(500);
    expect(counts.adopted).toBeGreaterThanOrEqual(500);
    expect(births.size).toBeGreaterThanOrEqual(300);
    expect(counts.incomplete).toBeLessThan(counts.own);
  } finally {
    await heirs.end();
  }
});

nativeTest("a pid that is recycled has its recycler above it, at every birth", ["linux", "root"], async () => {
  const recycler = start("recycler", ["set-tid"]);
  try {
    const pid = (await recycler.next())["pid"] as number;
    const [row] = listProcesses().filter(({ pid: own, name, parentPid }) => own !== pid && name !== undefined && /^u100[12]$|^recycler$/.test(name) && parentPid === process.pid);
    let chains = 0;
    for (let look = 0; chains < 1_000 && look < 1_000_000; look++) {
      const answer = attempt(() => readProcessAncestry(pid));
      if (answer === null || typeof answer === "string") continue;
      expect(pidsOf(answer).slice(0, 3)).toEqual([pid, row?.pid, process.pid]);
      expect(answer.stoppedBy).toBe("root");
      chains++;
    }
    expect(chains).toBe(1_000);
  } finally {
    await recycler.end();
  }
});

const OWN_CHAIN = "const { chain, stoppedBy } = procSafe.readProcessAncestry(process.pid); report([chain.map((of) => of.pid), stoppedBy, process.pid]);";

nativeTest("a parent outside the pid namespace is a root's", ["linux", "root"], () => {
  const [chain, stoppedBy, own] = scriptValue<[number[], string, number]>(OWN_CHAIN, { launcher: inNamespace("", "root") });
  expect([chain.at(0), chain.at(-1), stoppedBy]).toEqual([own, 1, "root"]);
});

nativeTest("an entered pid namespace shows no parent of a process that is not its init", ["linux", "root"], async () => {
  const outer = spawn("unshare", ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sleep", "1000"], { stdio: "ignore" });
  try {
    await new Promise((resolve) => outer.once("spawn", resolve));
    let init: number | undefined;
    // unshare(1) executes sleep only after it has mounted the namespace's /proc.
    while (init === undefined) init = listProcesses().find(({ parentPid, name }) => parentPid === outer.pid && name === "sleep")?.pid;
    const launcher = ["nsenter", "--target", String(init), "--pid", "--mount", "sh", "-c", 'cd "$0" && exec "$@"', stagedPackage()];
    const [chain, stoppedBy, own] = scriptValue<[number[], string, number]>(OWN_CHAIN, { launcher });
    expect([chain, stoppedBy]).toEqual([[own], "root"]);
    expect(own).not.toBe(1);
  } finally {
    const closed = new Promise((resolve) => outer.once("close", resolve));
    outer.kill("SIGKILL");
    await closed;
  }
});

nativeTest("what the kernel refuses to describe is no end of the chain", ["linux", "root"], () => {
  const script = `
    const { chain, complete, stoppedBy } = procSafe.readProcessAncestry(process.pid);
    report([chain.map((of) => of.pid === process.pid), complete, stoppedBy, attempt(() => procSafe.readProcessAncestry(Number(process.env.STRANGER)))]);
  `;
  const [chain, complete, stoppedBy, stranger] = scriptValue<[boolean[], boolean, string, { code: string; reason: string }]>(script, { launcher: inNamespace("hidepid=2", "nobody") });
  expect([chain, complete, stoppedBy]).toEqual([[true], false, "unreadable-parent"]);
  expect(stranger).toMatchObject({ code: "access-denied", reason: "visibility-policy" });
});
