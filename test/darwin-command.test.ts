// Commands by the shipped macOS binary through our own TypeScript, in the rig. The kernel is simulated: see
// rig/README.md for what that cannot show.

import { expect } from "vitest";
import type { ReadProcessCommandOptions } from "proc-safe";
import type { Changes, Config, Hook, SimProcess } from "../rig/index.mjs";
import { rigTest } from "./support/rig.ts";
import type { InRig } from "./support/rig.ts";

const ME = 501;
const OWN_PID = 99_000;
const PID = 300;
const PROCARGS2 = 49;
const VNODEPATHINFO = 9;
const PATHINFO = 11;
const KERN_PROC = 14;

const SUBJECT: SimProcess = {
  pid: PID,
  ppid: OWN_PID,
  uid: ME,
  comm: "subject",
  uniqueid: 60,
  idversion: 7,
  path: "./one",
  exe: "/opt/one",
  cwd: "/srv/one",
  argv: ["one", "", "a\nb"],
  env: ["OTHER=x", "WHO=one", "WHO=two"],
};

function world({ rig }: Pick<InRig, "rig">, changes: Changes = {}, hooks: readonly Hook[] = [], config: Config = {}): void {
  rig.sim.set({
    config: { uid: ME, selfPid: OWN_PID, ...config },
    processes: [
      { pid: 0, ppid: 0, pgid: 0, uid: 0, comm: "kernel_task", uniqueid: 0 },
      { pid: 1, ppid: 0, uid: 0, comm: "launchd", uniqueid: 1 },
      { pid: OWN_PID, ppid: 1, uid: ME, comm: "node", uniqueid: 50, argv: ["node"], env: ["WHO=me"] },
      { ...SUBJECT, ...changes },
    ],
    hooks,
  });
}

const KEYS: ReadProcessCommandOptions = { environmentKeys: ["WHO", "NONE"], timeoutMs: 20_000 };
const ONE = { executable: "/opt/one", argv: ["one", "", "a\nb"], cwd: "/srv/one", environment: { WHO: "one" } };

function answer({ api }: Pick<InRig, "api">, pid = PID, options = KEYS): object {
  try {
    return { command: api.readProcessCommand(pid, options) };
  } catch (error) {
    const { code, details } = error as { code: string; details?: object };
    return { code, ...details };
  }
}

/** The command in a full census, by the row of the same process. */
function inCensus({ api }: Pick<InRig, "api">, pid = PID): object | undefined {
  const row = api.listProcesses({ includeCommand: true, environmentKeys: ["WHO", "NONE"] }).find((one) => one.pid === pid);
  expect(row).toBeDefined();
  return row?.command;
}

rigTest("a command is program, arguments, working directory and the variables that were asked for", (at) => {
  world(at);
  expect(answer(at)).toEqual({ command: ONE });
  expect(inCensus(at)).toEqual(ONE);
  expect(answer(at, PID, { timeoutMs: 20_000 })).toEqual({ command: { ...ONE, environment: {} } });
  for (const row of at.api.listProcesses()) expect("command" in row).toBe(false);
  // Paths of every length up to two words: padding is no argument.
  for (let length = 1; length <= 16; length++) {
    const path = `/${"p".repeat(length)}`;
    world(at, { path, argv: ["", "b"] });
    expect(answer(at)).toEqual({ command: { ...ONE, argv: ["", "b"] } });
  }
});

rigTest("the calls that a command costs are those of its row and few more", (at) => {
  const calls = (changes: Changes, config: Config = {}): number[] => {
    world(at, changes, [], config);
    at.rig.sim.clearLog();
    answer(at);
    return at.rig.sim.log().filter(({ pid, fn }) => pid === PID && fn !== "sysctlbyname").map(({ flavor }) => flavor);
  };
  const [own, theirs] = [[17, 13, 3, 17], [17, 13, KERN_PROC, 17]];
  const rest = [PROCARGS2, PATHINFO, VNODEPATHINFO, 17];
  expect(calls({})).toEqual([17, ...own, ...rest]);
  expect(calls({ uid: 7 })).toEqual([17, ...theirs, PROCARGS2, 17]);
  expect(calls({ uid: 7 }, { uid: 0 })).toEqual([17, ...theirs, ...rest]);
});

rigTest("null: gone, exiting, a zombie; kernel_task runs no program", (at) => {
  world(at);
  expect(answer(at, 12_345)).toEqual({ command: null });
  for (const phase of ["exiting", "zombie"] as const) {
    world(at, { phase });
    expect(answer(at)).toEqual({ command: null });
    expect(inCensus(at)).toBeUndefined();
  }
  expect(answer(at, 0)).toEqual({ command: { argv: [], environment: {} } });
  expect(inCensus(at, 0)).toEqual({ argv: [], environment: {} });
});

rigTest("another user's command is refused, root's sight is whole", (at) => {
  const refused = { code: "access-denied", pid: PID, syscall: "sysctl", errno: "EINVAL" };
  world(at, { uid: 7 });
  expect(answer(at)).toEqual(refused);
  expect(inCensus(at)).toBeUndefined();
  world(at, { uid: 7 }, [], { uid: 0 });
  expect(answer(at)).toEqual({ command: ONE });
  // The answer ends with the arguments where the environment is kept from the caller.
  world(at, { env: [] });
  expect(answer(at)).toEqual({ ...refused, errno: "EPERM" });
  expect(answer(at, PID, { timeoutMs: 20_000 })).toEqual({ command: { ...ONE, environment: {} } });
  world(at, { args: { errno: "EPERM" } });
  expect(answer(at)).toEqual({ ...refused, errno: "EPERM" });
});

rigTest("a path that nobody can tell, or that leads elsewhere, is an absent key and never another path", (at) => {
  const { executable: _, ...withoutExecutable } = ONE;
  const { cwd: __, ...withoutDirectory } = ONE;
  for (const errno of ["EPERM", "EACCES", "ENOENT", "ENOTDIR", "EIO", "ESTALE"]) {
    world(at, { program: { errno } });
    expect(answer(at)).toEqual({ command: withoutExecutable });
    expect(inCensus(at)).toEqual(withoutExecutable);
    world(at, { directory: { errno } });
    expect(answer(at)).toEqual({ command: withoutDirectory });
    expect(inCensus(at)).toEqual(withoutDirectory);
  }
  // The kernel gives the end of what is too long for it, as if it were all.
  const deep = (length: number): string => `/${"d".repeat(length)}`.repeat(4);
  world(at, { cwd: deep(254) });
  expect(answer(at)).toEqual({ command: { ...ONE, cwd: deep(254) } });
  world(at, { cwd: deep(256) });
  expect(answer(at)).toEqual({ command: withoutDirectory });
  world(at, { cwd: "/tmp/gone", removed: true });
  expect(answer(at)).toEqual({ command: withoutDirectory });
  // Any other failure says nothing of the process, and a larger answer is another kernel's.
  for (const changes of [{ program: { errno: "ENOMEM" } }, { directory: { errno: "ENOMEM" } }]) {
    world(at, changes);
    expect(answer(at)).toMatchObject({ code: "operation-failed", errno: "ENOMEM", pid: PID });
    expect(() => inCensus(at)).toThrow(expect.objectContaining({ code: "operation-failed" }));
  }
  world(at, { directory: "short" });
  expect(answer(at)).toMatchObject({ code: "operation-failed", reason: "malformed-record" });
});

rigTest("Rosetta: what can be read is read; a silence of the kernel is unsupported-platform, not a refusal", (at) => {
  const translated = { flag: 0x4004 | at.rig.FLAG.P_TRANSLATED };
  const own = (changes: Changes): void => at.rig.sim.patch(OWN_PID, changes);
  const silent = { args: "absent" } as const;
  world(at, translated);
  expect(answer(at)).toEqual({ command: ONE });
  world(at);
  own(translated);
  expect(answer(at)).toEqual({ command: ONE });
  world(at, silent);
  expect(answer(at)).toEqual({ code: "access-denied", pid: PID, syscall: "sysctl", errno: "EINVAL" });
  world(at, { ...silent, ...translated });
  const unsupported = { code: "unsupported-platform", reason: "translated", pid: PID };
  expect(answer(at)).toEqual(unsupported);
  expect(inCensus(at)).toBeUndefined();
  world(at, { ...translated, args: { errno: "EIO" } });
  expect(answer(at)).toEqual(unsupported);
  world(at, silent);
  own(translated);
  expect(answer(at)).toEqual(unsupported);
  // Another user's is refused whoever translates it, and what exits has none.
  world(at, { ...translated, uid: 7 });
  expect(answer(at)).toMatchObject({ code: "access-denied" });
  world(at, { ...translated, phase: "exit-begun", ...silent });
  expect(answer(at)).toEqual({ command: null });
});

rigTest("more than ARG_MAX, or memory that cannot be read, is no shorter list", (at) => {
  world(at, { argv: Array(11).fill("x".repeat(100_000)) as string[] });
  expect(answer(at)).toEqual({ code: "operation-failed", reason: "too-long", pid: PID });
  expect(inCensus(at)).toBeUndefined();
  world(at, { args: { errno: "EIO" } });
  expect(answer(at)).toEqual({ code: "operation-failed", reason: "cut-short", pid: PID });
  expect(inCensus(at)).toBeUndefined();
});

rigTest("an exec, an exit or a recycled pid between any two calls mixes nothing", (at) => {
  const two: Changes = { idversion: 9, path: "two", exe: "/opt/two", cwd: "/srv/two", argv: ["two"], env: ["WHO=2"], comm: "two" };
  const TWO = { executable: "/opt/two", argv: ["two"], cwd: "/srv/two", environment: { WHO: "2" } };
  const flavors = [17, 13, 3, PATHINFO, VNODEPATHINFO].map((flavor) => ["proc_pidinfo", flavor] as const);
  const calls = [...flavors, ["sysctl", PROCARGS2] as const];
  const seen = new Set<string>();
  for (const [fn, flavor] of calls) {
    for (const number of [1, 2, 3, 4]) {
      for (const when of ["before", "after"] as const) {
        const hook = { fn, flavor, pid: PID, call: number, times: 1, when };
        world(at, {}, [{ ...hook, set: two }]);
        const executed = answer(at);
        expect([{ command: ONE }, { command: TWO }]).toContainEqual(executed);
        seen.add(JSON.stringify(executed));
        // A program that is executed and gives way at once to the first: only the version tells.
        world(at, {}, [{ ...hook, set: two }, { fn: "sysctl", flavor: PROCARGS2, pid: PID, call: 1, times: 1, when: "after", set: { ...SUBJECT, idversion: 11 } }]);
        expect([{ command: ONE }, { command: TWO }]).toContainEqual(answer(at));
        world(at, {}, [{ ...hook, replace: { ...two, ppid: OWN_PID, uid: ME, uniqueid: 70 } }]);
        const [row] = at.api.listProcesses({ pids: [PID], includeCommand: true, environmentKeys: ["WHO"] });
        expect(row?.command).toEqual(row?.name === "two" ? TWO : ONE);
        world(at, {}, [{ ...hook, vanish: true }]);
        expect([{ command: null }, { command: ONE }]).toContainEqual(answer(at));
      }
    }
  }
  expect(seen.size).toBe(2);
});

rigTest("a process that executes without end is unstable, and a row without a command", (at) => {
  const hooks = Array.from({ length: 40 }, (_, index): Hook => ({
    fn: "sysctl", flavor: PROCARGS2, pid: PID, call: index + 1, times: 1, set: { idversion: 100 + index },
  }));
  world(at, {}, hooks);
  expect(answer(at)).toEqual({ code: "incomplete", reason: "unstable-pid", pid: PID });
  world(at, {}, hooks);
  expect(inCensus(at)).toBeUndefined();
});

rigTest("a target that does not answer is waited for no longer than asked", async (at) => {
  const slow: Hook = { fn: "sysctl", flavor: PROCARGS2, pid: PID, times: -1, delayMs: 3_000 };
  world(at, {}, [slow]);
  const begun = performance.now();
  expect(answer(at, PID, { timeoutMs: 100 })).toEqual({ code: "timeout" });
  expect(performance.now() - begun).toBeLessThan(2_900);
  const [row] = at.api.listProcesses({ pids: [PID], includeCommand: true, timeoutMs: 2_000 });
  expect(row).toMatchObject({ pid: PID, name: "subject" });
  expect("command" in row!).toBe(false);
  at.rig.sim.hooks([]);
  expect(answer(at)).toEqual({ command: ONE });
});
