// The shipped macOS binary through our own TypeScript, in the rig: each line of the table in docs/darwin.md, and
// changes between any two calls. The kernel is simulated: see rig/README.md for what that cannot show.

import { Worker } from "node:worker_threads";
import { join } from "node:path";
import { expect } from "vitest";
import type { ProcessIdentity, ProcessSnapshot } from "proc-safe";
import type { Changes, Config, Hook, LogEntry, Override, SimProcess } from "../rig/index.mjs";
import { ROOT } from "./support/paths.ts";
import { rigTest } from "./support/rig.ts";
import type { InRig } from "./support/rig.ts";

const ME = 501;
const OWN_PID = 99_000;
const PID = 300;
const RECORD = 14;
const [UNIQUE, SHORT, BSD] = [17, 13, 3];

const CALLER: Config = { uid: ME, selfPid: OWN_PID };
const KERNEL_TASK: SimProcess = { pid: 0, ppid: 0, pgid: 0, uid: 0, comm: "kernel_task", uniqueid: 0, startSec: 1_000 };
const LAUNCHD: SimProcess = { pid: 1, ppid: 0, pgid: 1, uid: 0, comm: "launchd", uniqueid: 1, startSec: 1_001 };
const SELF: SimProcess = { pid: OWN_PID, ppid: 1, pgid: OWN_PID, uid: ME, comm: "node", uniqueid: 50, startSec: 2_000 };
const SUBJECT: SimProcess = {
  pid: PID,
  ppid: OWN_PID,
  pgid: 77,
  uid: ME,
  comm: "subject",
  uniqueid: 60,
  startSec: 3_000,
  startUsec: 123_456,
};

interface Extra {
  readonly hooks?: readonly Hook[];
  readonly config?: Config;
  readonly others?: readonly SimProcess[];
}

function world({ rig }: Pick<InRig, "rig">, changes: Changes = {}, { hooks = [], config = {}, others = [] }: Extra = {}): void {
  const processes = [KERNEL_TASK, LAUNCHD, SELF, { ...SUBJECT, ...changes }, ...others];
  rig.sim.set({ config: { ...CALLER, ...config }, processes, hooks });
}

function rowOf({ api }: Pick<InRig, "api">, pid = PID): ProcessSnapshot | undefined {
  const [selected] = api.listProcesses({ pids: [pid] });
  return selected;
}

const identity = (changes: Partial<ProcessIdentity> = {}): Partial<ProcessIdentity> => ({
  pid: PID,
  parentPid: OWN_PID,
  startTimeMicros: 3_000_123_456,
  startTimeResolutionMicros: 1,
  uniqueId: "60",
  exited: false,
  ...changes,
});

const WHOLE = { pid: PID, owner: "same", parentPid: OWN_PID, processGroupId: 77, uid: ME, name: "subject" } as const;
const BARE = { pid: PID, owner: "unknown" };

function caught(call: () => unknown): { code?: string; details?: Record<string, unknown> } {
  try {
    call();
  } catch (error) {
    return error as { code?: string };
  }
  return {};
}

const call = ({ fn, flavor, arg }: LogEntry): string =>
  fn === "proc_pidinfo" ? `${flavor}/${arg}` : fn === "sysctl" && flavor === RECORD ? "record" : fn;
const callsOf = (log: LogEntry[], pid: number): string[] =>
  log.filter((entry) => entry.pid === pid && !entry.fn.startsWith("proc_list")).map(call);

rigTest("the binary asks for nothing that the rig lacks, and stays", ({ api, rig }) => {
  const file = join(ROOT, "prebuilds/darwin-x64.node");
  expect(rig.info(file)).toMatchObject({ unresolved: [], weakMissing: [] });
  world({ rig });
  expect(api.nativeStatus()).toMatchObject({ state: "ready", target: "darwin-x64", path: file });
  expect(api.isSupported()).toBe(true);
  expect(api.readBootIdentity()).toEqual({ bootId: expect.stringMatching(/^[0-9A-F-]{36}$/) as string });
  expect(rig.info(file).pinned).toBe(true);
});

rigTest("a full census has kernel_task, launchd, the caller and everyone, in order", (at) => {
  world(at);
  const rows = at.api.listProcesses();
  expect(rows.map((row) => row.pid)).toEqual([0, 1, PID, OWN_PID].sort((a, b) => a - b));
  expect(rows[0]).toMatchObject({ pid: 0, processGroupId: 0, parentPid: 0, owner: "different", identity: { uniqueId: "0" } });
  expect(Object.isFrozen(rows) && rows.every((row) => Object.isFrozen(row))).toBe(true);
  expect(structuredClone(rows)).toEqual(rows);
});

rigTest("libproc has it: every fact, four calls for ours, four for another's", (at) => {
  world(at);
  expect(rowOf(at)).toEqual({ ...WHOLE, state: "running", identity: expect.objectContaining(identity()) as unknown });
  expect(callsOf(at.rig.sim.log(), PID)).toEqual(["17/1", "13/0", "3/1", "17/1"]);
  world(at, { uid: 0, stat: 4 });
  expect(rowOf(at)).toMatchObject({ ...WHOLE, owner: "different", uid: 0, state: "stopped", identity: identity() });
  expect(callsOf(at.rig.sim.log(), PID)).toEqual(["17/1", "13/0", "record", "17/1"]);
});

rigTest("exit has begun where libproc still has it", (at) => {
  world(at, { phase: "exit-begun" });
  expect(rowOf(at)).toMatchObject({ ...WHOLE, state: "running", exiting: true, identity: identity() });
});

rigTest("ESRCH and P_WEXIT: the exit window keeps every fact", (at) => {
  for (const uid of [ME, 0]) {
    for (const [stat, state] of [[2, "running"], [4, "stopped"], [3, "running"]] as const) {
      world(at, { phase: "exiting", stat, uid });
      const row = { ...WHOLE, uid, owner: uid === ME ? "same" : "different", state, exiting: true };
      expect(rowOf(at)).toEqual({ ...row, identity: expect.objectContaining(identity()) as unknown });
      expect(callsOf(at.rig.sim.log(), PID)).toEqual(["17/1", "13/0", "record", "17/1"]);
      expect(at.api.listProcesses().find((found) => found.pid === PID)).toEqual(rowOf(at));
      expect(at.api.readProcessIdentity(PID)).toMatchObject(identity());
    }
  }
  // A state that no header names is no state.
  world(at, { phase: "exiting", stat: 9 });
  expect("state" in (rowOf(at) ?? {})).toBe(false);
});

rigTest("ESRCH and SZOMB: a zombie, which is not exiting", (at) => {
  for (const uid of [ME, 0]) {
    world(at, { phase: "zombie", stat: 5, uid });
    const row = rowOf(at);
    expect(row).toMatchObject({ uid, parentPid: OWN_PID, processGroupId: 77, state: "zombie" });
    expect("exiting" in (row ?? {})).toBe(false);
    expect(row?.identity).toMatchObject(identity({ exited: true }));
    expect(at.api.readProcessIdentity(PID)).toMatchObject(identity({ exited: true }));
  }
});

rigTest("ESRCH and another record: bare, after one more try", (at) => {
  world(at, { short: "absent" });
  expect(rowOf(at)).toEqual(BARE);
  expect(callsOf(at.rig.sim.log(), PID).filter((made) => made === "13/0")).toHaveLength(2);
  world(at, { libproc: "absent" });
  expect(rowOf(at)).toEqual(BARE);
});

rigTest("ESRCH and no record: absent if libproc says so of the dead too", (at) => {
  world(at);
  at.rig.sim.remove(PID);
  expect(at.api.listProcesses({ pids: [PID] })).toEqual([]);
  expect(at.api.readProcessIdentity(PID)).toBeNull();
  world(at, { phase: "reserved" });
  expect(at.api.readProcessIdentity(PID)).toBeNull();
  world(at, { phase: "exiting", record: "absent" });
  expect(rowOf(at)).toEqual(BARE);
  expect(caught(() => at.api.readProcessIdentity(PID))).toMatchObject({ code: "incomplete" });
});

rigTest("an embryo keeps what libproc says", (at) => {
  world(at, { phase: "embryo", stat: 1 });
  expect(rowOf(at)).toMatchObject({ ...WHOLE, state: "running", identity: identity() });
  world(at, { phase: "embryo", stat: 1, uid: 0 });
  expect(rowOf(at)).toEqual({ ...WHOLE, uid: 0, owner: "different", state: "running" });
});

rigTest("ESRCH and a refused record: access-denied", (at) => {
  for (const errno of ["EPERM", "EACCES"]) {
    world(at, { phase: "exiting", record: { errno } });
    for (const read of [() => rowOf(at), () => at.api.listProcesses(), () => at.api.readProcessIdentity(PID)]) {
      expect(caught(read)).toMatchObject({ code: "access-denied", details: { pid: PID, syscall: "sysctl", errno } });
    }
  }
});

rigTest("a refused process is bare, and its record is not asked for", (at) => {
  for (const phase of ["live", "exiting", "zombie"] as const) {
    world(at, { phase, libproc: { errno: "EPERM" } });
    expect(rowOf(at)).toEqual(BARE);
    expect(callsOf(at.rig.sim.log(), PID)).not.toContain("record");
  }
  // A single read needs a birth only, and the record has one.
  world(at, { libproc: { errno: "EPERM" } });
  const { uniqueId: _, ...weaker } = identity();
  expect(at.api.readProcessIdentity(PID)).toMatchObject(weaker);
  world(at, { libproc: { errno: "EPERM" }, record: { errno: "EPERM" } });
  expect(caught(() => at.api.readProcessIdentity(PID))).toMatchObject({ code: "access-denied", details: { pid: PID, errno: "EPERM" } });
});

rigTest("any other errno, a short answer, another pid's: operation-failed", (at) => {
  const live: Changes[] = [{ short: { errno: "EIO" } }, { tbsd: { errno: "EFAULT" } }, { uniq: { errno: "EIO" } }];
  const lost: Changes[] = [{ record: { errno: "EINVAL" } }];
  for (const changes of [...live, ...lost.map((change): Changes => ({ ...change, phase: "exiting" }))]) {
    world(at, changes);
    for (const read of [() => rowOf(at), () => at.api.listProcesses(), () => at.api.readProcessIdentity(PID)]) {
      expect(caught(read)).toMatchObject({ code: "operation-failed", details: { pid: PID } });
    }
  }
  const wrong: Override[] = ["short", { len: 1 }, { patch: [[0, 4, 299]] }];
  const answers: Changes[] = [
    ...wrong.map((short): Changes => ({ short })),
    { tbsd: "short" },
    { tbsd: { patch: [[12, 4, 299]] } },
    { tbsd: { patch: [[128, 8, 1_000_000]] } },
    { phase: "exiting", record: "short" },
    { phase: "exiting", record: { patch: [[40, 4, 299]] } },
    { phase: "exiting", record: { patch: [[8, 4, -1]] } },
  ];
  for (const changes of answers) {
    world(at, changes);
    expect(caught(() => rowOf(at))).toMatchObject({ code: "operation-failed", details: { reason: "malformed-record" } });
  }
  // The structure of flavor 17 is not in the public SDK: another size is no answer.
  world(at, { uniq: "short" });
  expect(rowOf(at)).toMatchObject({ ...WHOLE, state: "running" });
  expect(rowOf(at)?.identity).not.toHaveProperty("uniqueId");
});

rigTest("a birth that is refused takes the identity and nothing else", (at) => {
  world(at, { uid: 0, record: { errno: "EPERM" } });
  expect(rowOf(at)).toEqual({ ...WHOLE, uid: 0, owner: "different", state: "running" });
  world(at, { tbsd: { errno: "EPERM" } });
  expect(rowOf(at)).toMatchObject({ ...WHOLE, identity: identity() });
});

rigTest("the parent is the real one under a debugger, also after death", (at) => {
  for (const phase of ["live", "exiting", "zombie"] as const) {
    const flag = phase === "live" ? 0x4804 : undefined;
    world(at, { phase, ppid: 1, oppid: OWN_PID, ...(flag !== undefined && { flag }) });
    expect(rowOf(at)?.parentPid, phase).toBe(OWN_PID);
    expect(at.api.readProcessIdentity(PID)?.parentPid).toBe(OWN_PID);
    expect(at.rig.sim.log().filter((entry) => entry.pid === PID && entry.fn !== "kill").length / 2).toBeLessThanOrEqual(5);
  }
});

rigTest("a group of 0 is no fact, and the effective user decides", (at) => {
  world(at, { pgid: 0, uid: 0, ruid: ME });
  expect(rowOf(at)).toMatchObject({ owner: "different", uid: 0 });
  expect("processGroupId" in (rowOf(at) ?? {})).toBe(false);
  world(at, { uid: 0 }, { config: { uid: ME, euid: 0 } });
  expect(rowOf(at)).toMatchObject({ owner: "same", uid: 0, identity: identity() });
});

rigTest("names are bytes of at most fifteen, whatever the phase", (at) => {
  for (const phase of ["live", "exiting"] as const) {
    world(at, { phase, comm: "sixteen-letters!" });
    expect(rowOf(at)?.name).toBe("sixteen-letters");
    world(at, { phase, comm: "" });
    expect(rowOf(at)?.name).toBe("");
  }
});

// Changes between any two calls.

/** One call at a time: before the first, and after each. */
const MOMENTS: Hook[] = [
  { fn: "proc_pidinfo", flavor: UNIQUE, pid: PID, when: "before" },
  { fn: "proc_pidinfo", flavor: UNIQUE, pid: PID },
  { fn: "proc_pidinfo", flavor: SHORT, pid: PID },
  { fn: "proc_pidinfo", flavor: BSD, pid: PID },
  { fn: "sysctl", flavor: RECORD, pid: PID },
];
const STARTS: Changes[] = ["live", "exit-begun", "exiting", "zombie"].flatMap((phase) =>
  [ME, 0].map((uid): Changes => ({ phase: phase as NonNullable<Changes["phase"]>, uid })),
);

rigTest("reaped before the last call: no row, and null", (at) => {
  for (const start of STARTS) {
    for (const moment of MOMENTS) {
      for (const read of ["row", "identity"]) {
        world(at, start, { hooks: [{ ...moment, vanish: true }] });
        const found = read === "row" ? rowOf(at) : at.api.readProcessIdentity(PID);
        const fired = callsOf(at.rig.sim.log(), PID).includes(moment.flavor === RECORD ? "record" : `${moment.flavor}/${moment.flavor === SHORT ? 0 : 1}`);
        if (fired) expect(found ?? "none", `${JSON.stringify(start)} ${JSON.stringify(moment)}`).toBe("none");
        else expect(found).toBeTruthy();
      }
    }
  }
});

rigTest("the pid changes hands after any call: the row is its holder's", (at) => {
  const next: Changes = { ppid: 1, pgid: 88, comm: "next", startSec: 4_000, startUsec: 5 };
  for (const start of STARTS) {
    for (const then of STARTS) {
      for (const moment of MOMENTS) {
        world(at, start, { hooks: [{ ...moment, replace: { ...next, ...then } }] });
        const row = rowOf(at);
        const what = `${JSON.stringify(start)} then ${JSON.stringify(then)} at ${JSON.stringify(moment)}: ${JSON.stringify(row)}`;
        const mine = row?.name === "next";
        expect(row, what).toMatchObject(
          mine
            ? { parentPid: 1, processGroupId: 88, uid: then.uid, identity: { startTimeMicros: 4_000_000_005, parentPid: 1 } }
            : { parentPid: OWN_PID, processGroupId: 77, uid: start.uid, identity: identity({ exited: start.phase === "zombie" }) },
        );
        expect(row?.identity?.uniqueId === "60", what).toBe(!mine);
        expect(row?.state === "zombie", what).toBe((mine ? then : start).phase === "zombie");
      }
    }
  }
});

rigTest("it begins to exit or dies after any call: the row is whole", (at) => {
  for (const uid of [ME, 0]) {
    for (const set of [{ phase: "exit-begun" }, { phase: "exiting" }, { phase: "zombie", stat: 5 }] as Changes[]) {
      for (const moment of MOMENTS) {
        world(at, { uid }, { hooks: [{ ...moment, set }] });
        const { exited: _, ...alive } = identity();
        expect(rowOf(at)).toMatchObject({ parentPid: OWN_PID, processGroupId: 77, uid, identity: alive });
      }
    }
  }
});

rigTest("random changes between any two calls give no row of two processes", (at) => {
  let seed = 20_261_130;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % below;
  };
  const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T;
  const pids = [300, 301, 302, 303];
  const phases = ["embryo", "live", "live", "exit-begun", "exiting", "zombie"] as const;
  // Everything about a process follows from its birth.
  const born = (birth: number): Changes => ({
    ppid: 1,
    pgid: 10_000 + birth,
    uid: birth % 3 === 0 ? 20_000 + birth : ME,
    comm: `b${birth}`,
    startSec: 30_000 + birth,
    phase: pick(phases),
  });
  for (let round = 0; round < 400; round++) {
    let births = 100;
    const others = pids.map((pid): SimProcess => ({ pid, ...born(births++) }));
    const hooks = Array.from({ length: random(12) }, (): Hook => {
      const moment = { ...pick(MOMENTS), pid: pick(pids), call: 1 + random(3), target: pick(pids) };
      return pick<Hook>([
        { ...moment, vanish: true },
        { ...moment, replace: born(births++) },
        { ...moment, set: { phase: pick(["exiting", "zombie"] as const) } },
      ]);
    });
    at.rig.sim.set({ config: CALLER, processes: [KERNEL_TASK, LAUNCHD, SELF, ...others], hooks });
    const rows = random(2) === 0 ? at.api.listProcesses() : at.api.listProcesses({ pids });
    for (const row of rows.filter((one) => pids.includes(one.pid))) {
      if (row.name === undefined) {
        expect(row).toEqual({ pid: row.pid, owner: "unknown" });
        continue;
      }
      const birth = Number(row.name.slice(1));
      const uid = birth % 3 === 0 ? 20_000 + birth : ME;
      expect(row).toMatchObject({ parentPid: 1, processGroupId: 10_000 + birth, uid, owner: uid === ME ? "same" : "different" });
      if (row.identity !== undefined) expect(row.identity.startTimeMicros).toBe((30_000 + birth) * 1_000_000);
      expect(row.identity?.exited ?? false).toBe(row.state === "zombie");
    }
  }
});

// The list.

rigTest("a list without kernel_task is cut, one without the caller is not ours", (at) => {
  at.rig.sim.set({ config: CALLER, processes: [{ ...KERNEL_TASK, listed: false }, LAUNCHD, SELF] });
  expect(caught(() => at.api.listProcesses())).toMatchObject({ code: "incomplete", details: { reason: "cut-short" } });
  const lists = at.rig.sim.log().filter((entry) => entry.fn === "proc_listpids" && entry.size > 0);
  expect(lists).toHaveLength(8);
  at.rig.sim.set({ config: CALLER, processes: [KERNEL_TASK, LAUNCHD, { ...SELF, listed: false }] });
  expect(caught(() => at.api.listProcesses())).toMatchObject({ code: "incomplete", details: { reason: "own-pid-missing" } });
});

rigTest("a fork storm between the estimate and the list is seen", (at) => {
  const storm = Array.from({ length: 200 }, (_, index): SimProcess => ({ pid: 1_000 + index, ppid: 1, uid: 0, comm: "storm" }));
  world(at, { phase: "zombie", stat: 5 }, { hooks: [{ fn: "proc_listpids", call: 1, add: storm }] });
  const rows = at.api.listProcesses();
  expect(rows).toHaveLength(204);
  expect(rows.find((row) => row.pid === PID)?.state).toBe("zombie");
});

rigTest("a sandbox that refuses the list is no empty census", (at) => {
  for (const call of [1, 2, 3]) {
    world(at, {}, { hooks: [{ fn: "proc_listpids", call, times: -1, errno: "EPERM" }] });
    const details = { syscall: "proc_listallpids", errno: "EPERM" };
    expect(caught(() => at.api.listProcesses())).toMatchObject({ code: "access-denied", details });
  }
});

rigTest("a sandbox that refuses everybody else leaves bare rows", (at) => {
  world(at, {}, { config: { denyPidinfo: "EPERM" } });
  const rows = at.api.listProcesses();
  expect(rows.find((row) => row.pid === PID)).toEqual(BARE);
  expect(rows.find((row) => row.pid === OWN_PID)?.owner).toBe("same");
});

rigTest("2,000 and 20,000 processes", (at) => {
  for (const count of [2_000, 20_000]) {
    const others = Array.from(
      { length: count },
      (_, index): SimProcess => ({
        pid: 1_000 + index,
        ppid: index % 7 === 0 ? OWN_PID : 1,
        pgid: 1_000 + index,
        uid: index % 2 === 0 ? ME : 0,
        comm: `p${index}`,
        uniqueid: 1_000 + index,
        startSec: 5_000 + index,
        phase: index % 100 === 99 ? "exiting" : "live",
      }),
    );
    world(at, {}, { others });
    at.rig.sim.clearLog();
    const rows = at.api.listProcesses();
    expect(rows).toHaveLength(count + 4);
    for (const row of rows) {
      const index = row.pid - 1_000;
      if (!/^p\d/.test(row.name ?? "")) continue;
      expect(row.name).toBe(`p${index}`);
      expect(row.exiting === true).toBe(index % 100 === 99);
      expect(row.identity?.startTimeMicros).toBe((5_000 + index) * 1_000_000);
    }
    if (count === 2_000) expect(at.rig.sim.log()).toHaveLength(4 * (count + 4) + 3);
  }
});

// Time.

rigTest("a record that exec holds ends with timeoutMs, and leaves two helpers at most", async (at) => {
  world(at, { uid: 0, transit: true });
  for (let helper = 0; helper < 2; helper++) {
    expect(caught(() => at.api.listProcesses({ pids: [PID], timeoutMs: 40 })).code).toBe("timeout");
  }
  const before = process.hrtime.bigint();
  expect(caught(() => at.api.listProcesses({ timeoutMs: 600_000 })).code).toBe("timeout");
  expect(Number(process.hrtime.bigint() - before) / 1e6).toBeLessThan(300_000);
  // Our own processes need no record.
  expect(at.api.listProcesses({ pids: [OWN_PID], timeoutMs: 600_000 })).toHaveLength(1);
  at.rig.sim.patch(PID, { transit: false });
  const end = Date.now() + 60_000;
  while (caught(() => at.api.listProcesses({ timeoutMs: 600_000 })).code === "timeout") {
    expect(Date.now()).toBeLessThan(end);
    await new Promise((resolve) => void setImmediate(resolve));
  }
  expect(at.api.listProcesses({ timeoutMs: 600_000 })).toHaveLength(4);
});

// Workers.

rigTest("Workers take censuses while processes exit and change hands", async (at) => {
  world(at);
  const code = `
    import { workerData, parentPort } from "node:worker_threads";
    const { install } = await import(workerData.rig);
    install({ platform: "darwin", arch: "x64" });
    const { listProcesses } = await import(workerData.api);
    for (let census = 0; census < 200; census++) {
      for (const row of listProcesses()) {
        if (row.pid !== 300) continue;
        const whole = row.parentPid !== undefined && row.identity !== undefined && row.identity.startTimeMicros % 1000000 === row.processGroupId;
        if (!whole) throw new Error(JSON.stringify(row));
      }
    }
    parentPort.postMessage("done");
  `;
  const urls = { rig: new URL("../rig/index.mjs", import.meta.url).href, api: new URL("../dist/index.js", import.meta.url).href };
  const url = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
  const running = { workers: 4 };
  const workers = Array.from({ length: running.workers }, () => {
    const worker = new Worker(url, { workerData: urls });
    return new Promise<void>((resolve, reject) => {
      worker.on("message", () => resolve());
      worker.on("error", reject);
    }).finally(() => running.workers--);
  });
  let birth = 100;
  while (running.workers > 0) {
    at.rig.sim.remove(PID);
    at.rig.sim.add({ ...SUBJECT, uniqueid: 1_000 + birth, pgid: birth, startUsec: birth, phase: birth % 3 === 0 ? "exiting" : "live" });
    birth = birth === 900_000 ? 100 : birth + 1;
    await new Promise((resolve) => void setImmediate(resolve));
  }
  await Promise.all(workers);
});

// What is built on identities.

rigTest("identities, ancestors and trees go by unique ids", (at) => {
  // A child whose clock stood before its parent's: the kernel's count decides.
  const child: SimProcess = { ...SUBJECT, pid: 301, ppid: PID, uniqueid: 61, startSec: 2_500 };
  world(at, {}, { others: [child] });
  const saved = at.api.readProcessIdentity(PID);
  expect(at.api.inspectIdentity(saved as ProcessIdentity)).toBe("live");
  expect(at.api.readProcessAncestry(301)?.chain.map((one) => one.pid)).toEqual([301, PID, OWN_PID, 1]);
  at.rig.sim.patch(PID, { phase: "exiting" });
  expect(at.api.inspectIdentity(saved as ProcessIdentity)).toBe("live");
  at.rig.sim.patch(PID, { phase: "zombie", stat: 5 });
  expect(at.api.inspectIdentity(saved as ProcessIdentity)).toBe("exited");
  at.rig.sim.remove(PID);
  expect(at.api.inspectIdentity(saved as ProcessIdentity)).toBe("gone");
  at.rig.sim.add({ ...SUBJECT, uniqueid: 99 });
  expect(at.api.inspectIdentity(saved as ProcessIdentity)).toBe("reused");
});
