// The simulated kernel, seen only through Darwin code that was compiled against Apple's headers. The table of states
// is our reading of XNU: what each call says of a process at each point of its life.

import { Worker } from "node:worker_threads";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { MODULES } from "../build.mjs";
import type { Changes, Override, SimProcess } from "../index.mjs";
import { openModule, rig, rigTest } from "./support/module.ts";
import type { Answer } from "./support/module.ts";

const EPERM = 1;
const ESRCH = 3;
const EINTR = 4;
const EIO = 5;
const ENOMEM = 12;
const EINVAL = 22;
const ENOSPC = 28;
const EOVERFLOW = 84;
const [SIDL, SRUN, SSTOP, SZOMB] = [1, 2, 4, 5];
const P_TRACED = 0x800;
const P_WEXIT = 0x2000;
const [INEXIT, TRACED] = [4, 2];
const ME = 501;
const RECORD = 648;

const TBSD = 3;
const SHORT = 13;
const UNIQUE = 17;
const BOTH = 18;
const SIZES: Record<number, number> = { [TBSD]: 136, [SHORT]: 64, [UNIQUE]: 56, [BOTH]: 192 };

const KERNEL_TASK: SimProcess = { pid: 0, comm: "kernel_task", uid: 0, flag: 0x204 };
const LAUNCHD: SimProcess = { pid: 1, comm: "launchd", uid: 0 };
const BASE = [KERNEL_TASK, LAUNCHD];

const look = (pid: number, flavor: number, argument = 0): Answer => openModule().pidinfo(pid, flavor, argument, SIZES[flavor] ?? 0);
const record = (pid: number): Answer => openModule().record(pid, RECORD);
/** What a call gave, or the errno below 0; the record also knows success with nothing. */
const said = (answer: Answer, value: number): number => (answer.errno === 0 ? value : -answer.errno);
const statusOf = (pid: number, flavor: number, argument: number): number => {
  const answer = look(pid, flavor, argument);
  return said(answer, answer.status);
};
const ABSENT = 0;
const recordOf = (pid: number): number => {
  const answer = record(pid);
  return said(answer, answer.length === 0 ? ABSENT : answer.status);
};

interface Row {
  listed: boolean;
  short: [number, number];
  unique: [number, number];
  tbsd: [number, number];
  record: number;
  exiting: boolean;
  kill: number;
}

function row(pid: number): Row {
  return {
    listed: openModule().listPids(4096).pids.includes(pid),
    short: [statusOf(pid, SHORT, 0), statusOf(pid, SHORT, 1)],
    unique: [said(look(pid, UNIQUE, 0), 0), said(look(pid, UNIQUE, 1), 0)],
    tbsd: [statusOf(pid, TBSD, 0), statusOf(pid, TBSD, 1)],
    record: recordOf(pid),
    exiting: ((record(pid).flag ?? 0) & P_WEXIT) !== 0,
    kill: openModule().kill(pid, 0),
  };
}

const N = -ESRCH;
const P = -EPERM;
const ALIVE: Row = { listed: true, short: [SRUN, SRUN], unique: [0, 0], tbsd: [SRUN, SRUN], record: SRUN, exiting: false, kill: 0 };
const GONE: Row = { listed: false, short: [N, N], unique: [N, N], tbsd: [N, N], record: ABSENT, exiting: false, kill: ESRCH };
const EXITING: Row = { ...ALIVE, short: [N, SRUN], unique: [N, 0], tbsd: [N, SRUN], exiting: true };
const ZOMBIE: Row = { ...EXITING, short: [N, SZOMB], tbsd: [N, SZOMB], record: SZOMB };

const STATES: Record<string, [Changes | undefined, Row]> = {
  "fork has reserved the pid": [{ phase: "reserved" }, GONE],
  "embryo: libproc answers, the record is absent": [
    { phase: "embryo" },
    { ...ALIVE, short: [SIDL, SIDL], tbsd: [SIDL, SIDL], record: ABSENT },
  ],
  running: [{}, ALIVE],
  stopped: [{ stat: SSTOP }, { ...ALIVE, short: [SSTOP, SSTOP], tbsd: [SSTOP, SSTOP], record: SSTOP }],
  "exit has begun": [{ phase: "exit-begun" }, { ...ALIVE, exiting: true }],
  exiting: [{ phase: "exiting" }, EXITING],
  "exiting while stopped": [
    { stat: SSTOP, flag: 0x2084 },
    { ...EXITING, short: [N, SSTOP], tbsd: [N, SSTOP], record: SSTOP },
  ],
  zombie: [{ stat: SZOMB }, ZOMBIE],
  gone: [undefined, GONE],
  "another user's": [{ uid: 502 }, { ...ALIVE, tbsd: [P, P], kill: EPERM }],
  "another user's, exiting": [{ uid: 502, phase: "exiting" }, { ...EXITING, tbsd: [N, P] }],
  "another user's zombie": [{ uid: 502, phase: "zombie" }, { ...ZOMBIE, tbsd: [N, P] }],
  "my child that became root": [{ uid: 0, ruid: ME, svuid: 0 }, { ...ALIVE, tbsd: [P, P] }],
  "root's": [{ uid: 0 }, { ...ALIVE, tbsd: [P, P], kill: EPERM }],
};

for (const [name, [changes, expected]] of Object.entries(STATES)) {
  rigTest(`state: ${name}`, () => {
    rig.sim.set(changes === undefined ? BASE : [...BASE, { pid: 42, ...changes }]);
    expect(row(42)).toEqual(expected);
  });
}

rigTest("a traced stop shows the debugger as parent, and the record the real one", () => {
  rig.sim.set([...BASE, { pid: 42, stat: SSTOP, ppid: 900, oppid: 41, flag: 0x4004 | P_TRACED }]);
  expect(look(42, SHORT)).toMatchObject({ status: SSTOP, ppid: 900 });
  expect(look(42, SHORT).flags & TRACED).toBe(TRACED);
  expect(record(42)).toMatchObject({ status: SSTOP, ppid: 900, oppid: 41 });
  expect(record(42).flag & P_TRACED).toBe(P_TRACED);
});

rigTest("a parent's exit leaves its children to launchd, reaps its zombies and detaches from what it traced", () => {
  for (const end of [() => rig.sim.patch(41, { phase: "zombie" }), () => rig.sim.remove(41)]) {
    rig.sim.set([
      ...BASE,
      { pid: 41, uniqueid: 900 },
      { pid: 42, ppid: 41 },
      { pid: 43, ppid: 41, phase: "exiting" },
      { pid: 44, ppid: 41, phase: "zombie" },
      { pid: 45, ppid: 41, oppid: 7, flag: 0x4004 | P_TRACED },
    ]);
    rig.sim.patch(41, { phase: "exiting" });
    expect([42, 43, 44, 45].map((pid) => look(pid, SHORT, 1).ppid)).toEqual([41, 41, 41, 41]);
    end();
    expect([42, 43, 45].map((pid) => look(pid, SHORT, 1).ppid)).toEqual([1, 1, 7]);
    expect(look(42, UNIQUE).puniqueid).toBe(900n);
    expect(look(45, SHORT).flags & TRACED).toBe(0);
    expect(row(44)).toEqual(GONE);
  }
});

rigTest("a pid that is used again is another birth", () => {
  rig.sim.set([...BASE, { pid: 42 }]);
  const { uniqueid } = look(42, UNIQUE);
  rig.sim.add({ pid: 42, startSec: 9 });
  expect(look(42, UNIQUE).uniqueid).toBeGreaterThan(uniqueid);
  expect(record(42).sec).toBe(9);
});

rigTest("kernel_task ends the list of the living", () => {
  rig.sim.set([...BASE, { pid: 42 }, { pid: 43, phase: "zombie" }]);
  expect(openModule().listPids(4096).pids).toEqual([42, 1, 0, 43]);
  expect(look(0, SHORT)).toMatchObject({ ret: 64, pid: 0, status: SRUN });
  expect(look(0, SHORT).flags & 1).toBe(1);
  expect(look(0, UNIQUE).uniqueid).toBe(0n);
  expect(look(0, TBSD).errno).toBe(EPERM);
  expect(record(0).length).toBe(RECORD);
});

rigTest("root may see and signal all, but since macOS 26 not launchd", () => {
  const world = (release: number): void => rig.sim.set({ config: { uid: 0, release }, processes: [...BASE, { pid: 42, uid: 502 }] });
  world(15);
  expect([look(42, TBSD).ret, openModule().kill(42, 0), openModule().kill(1, 0)]).toEqual([136, 0, 0]);
  world(26);
  expect(openModule().kill(1, 0)).toBe(EPERM);
});

rigTest("a sandbox refuses what is about others", () => {
  const config = { selfPid: 41, denyList: "EPERM", denyPidinfo: "EPERM", denySysctl: "EPERM", denySignal: "EPERM" };
  rig.sim.set({ config, processes: [...BASE, { pid: 41 }, { pid: 42 }] });
  expect(openModule().listPids(4096)).toEqual({ count: 0, errno: EPERM, pids: [] });
  expect(openModule().estimate()).toEqual({ count: 0, errno: EPERM });
  expect([look(42, SHORT).errno, record(42).errno, openModule().kill(42, 0)]).toEqual([EPERM, EPERM, EPERM]);
  expect([look(41, SHORT).errno, openModule().kill(41, 0)]).toEqual([0, 0]);
});

rigTest("lists: newest first, the exited last; what does not fit is left out in silence", () => {
  rig.sim.set([...BASE, { pid: 50 }, { pid: 40 }, { pid: 60, phase: "zombie" }, { pid: 30 }, { pid: 70, phase: "exiting" }]);
  const list = (count: number): number[] => openModule().listPids(count * 4).pids;
  expect(list(100)).toEqual([30, 40, 50, 1, 0, 70, 60]);
  expect(list(6)).toEqual([30, 40, 50, 1, 0, 70]);
  expect(list(3)).toEqual([30, 40, 50]);
  const [ALL, UNKNOWN] = [1, 99];
  expect([openModule().listBytes(ALL, 4096), openModule().listBytes(ALL, 11), openModule().listBytes(UNKNOWN, 4096)]).toEqual([28, 8, 0]);
  expect(openModule().listPids(3)).toEqual({ count: 0, errno: ENOMEM, pids: [] });
  rig.sim.patch(50, { phase: "exiting" });
  expect(list(100)).toEqual([30, 40, 1, 0, 50, 70, 60]);
});

rigTest("lists: the kernel's own estimate cuts, too, and counts what is not listed", () => {
  const many = Array.from({ length: 30 }, (_, at) => ({ pid: 100 + at }));
  rig.sim.set({ config: { slack: 1 }, processes: [...BASE, ...many, { pid: 200, phase: "reserved" }] });
  expect(openModule().estimate()).toEqual({ count: 33, errno: 0 });
  rig.sim.set({ config: { slack: -5 }, processes: [...BASE, ...many] });
  const { pids } = openModule().listPids(4096);
  expect([pids.length, pids[0], pids.includes(0)]).toEqual([26, 129, false]);
});

rigTest("lists: an exec moves to the head since macOS 13", () => {
  for (const [release, expected] of [[12, [42, 41, 1, 0]], [13, [41, 42, 1, 0]]] as const) {
    rig.sim.set({ config: { release }, processes: [...BASE, { pid: 41, uniqueid: 300 }, { pid: 42 }] });
    rig.sim.patch(41, { idversion: 9999, comm: "new" });
    expect(openModule().listPids(4096).pids).toEqual(expected);
    expect(look(41, BOTH)).toMatchObject({ uniqueid: 300n, idversion: 9999, comm: "new" });
  }
});

rigTest("buffers: too small is ENOMEM before the lookup, larger is well", () => {
  rig.sim.set([...BASE, { pid: 42 }]);
  const pidinfo = (pid: number, size: number): [number, number] => {
    const { ret, errno } = openModule().pidinfo(pid, SHORT, 0, size);
    return [ret, errno];
  };
  expect([pidinfo(42, 63), pidinfo(77, 63), pidinfo(42, 64), pidinfo(42, 200)]).toEqual([[0, ENOMEM], [0, ENOMEM], [64, 0], [64, 0]]);
  expect(openModule().pidinfo(42, 99, 0, 200)).toEqual({ ret: 0, errno: EINVAL });
  expect(openModule().record(42, 647)).toEqual({ ret: -1, errno: ENOMEM, length: 0 });
  expect(openModule().record(77, 100)).toEqual({ ret: 0, errno: 0, length: 0 });
  expect([openModule().record(42, -1).length, openModule().record(77, -1).length]).toEqual([3888, 3240]);
});

rigTest("every field arrives where Apple's headers have it", () => {
  const times = { startSec: 1_711_111_111, startUsec: 123_456 };
  const ids = { uid: ME, ruid: 11, svuid: 12, gid: 13, rgid: 14, svgid: 15 };
  const rest = { xstat: 0x1f, nice: -3, tdev: 16, comm: "a-sixteen-char-n", name: "a longer name", flag: 0x4006, sid: 42 };
  rig.sim.set([...BASE, { pid: 42, ppid: 7, pgid: 9, oppid: 6, uniqueid: 2n ** 40n + 5n, puniqueid: 77, idversion: 5, ...times, ...ids, ...rest }]);
  const flags = 0x10 | 0x80 | 0x4000;
  expect(look(42, SHORT)).toEqual({
    ret: 64, errno: 0, pid: 42, ppid: 7, pgid: 9, status: SRUN, comm: "a-sixteen-char-", flags,
    uid: ME, ruid: 11, svuid: 12, gid: 13, rgid: 14, svgid: 15,
  });
  const tbsd = {
    errno: 0, pid: 42, ppid: 7, pgid: 9, status: SRUN, xstatus: 0x1f, flags: flags | 0x20, uid: ME, ruid: 11, nfiles: 8,
    nice: -3, tdev: 16, sec: 1_711_111_111, usec: 123_456, comm: "a-sixteen-char-", name: "a longer name",
  };
  const unique = { uniqueid: 2n ** 40n + 5n, puniqueid: 77n, idversion: 5 };
  expect(look(42, TBSD)).toEqual({ ret: 136, ...tbsd });
  expect(look(42, UNIQUE)).toEqual({ ret: 56, errno: 0, ...unique });
  expect(look(42, BOTH)).toEqual({ ret: 192, ...tbsd, ...unique });
  expect(record(42)).toEqual({
    ret: 0, errno: 0, length: RECORD, pid: 42, ppid: 7, oppid: 6, pgid: 9, status: SRUN, flag: 0x4006, xstat: 0x1f, nice: -3,
    tdev: 16, sec: 1_711_111_111, usec: 123_456, comm: "a-sixteen-char-n", uid: ME, ruid: 11, svuid: 12, gid: 13,
  });
});

rigTest("arguments: of our own living processes, cut short in silence", () => {
  rig.sim.set([
    ...BASE,
    { pid: 42, path: "/bin/x y", argv: ["x", "", "a b"], env: ["A=1"] },
    { pid: 43, argv: ["z"], phase: "zombie" },
    { pid: 44, argv: ["z"], uid: 502 },
    { pid: 45 },
  ]);
  const { bytes } = openModule().arguments(42, 4096);
  expect(bytes.readInt32LE(0)).toBe(3);
  expect(bytes.subarray(4).toString()).toBe("/bin/x y\0\0\0\0\0\0\0\0x\0\0a b\0A=1\0");
  expect(openModule().arguments(42, 10).bytes).toEqual(bytes.subarray(0, 10));
  expect([43, 44, 45, 99].map((pid) => openModule().arguments(pid, 4096).errno)).toEqual([EINVAL, EINVAL, EINVAL, EINVAL]);
});

rigTest("paths: of the living, of the working directory for its own user; the end of one that does not fit", () => {
  const deep = `/${"d".repeat(200)}`.repeat(6);
  rig.sim.set([
    ...BASE,
    { pid: 42, exe: "/opt/x y", cwd: "/srv/me" },
    { pid: 43, exe: "/opt/x", cwd: "/srv", phase: "exiting" },
    { pid: 44, exe: "/opt/theirs", cwd: "/theirs", uid: 502 },
    { pid: 45, exe: deep, cwd: deep },
    { pid: 46, cwd: "/tmp/gone", removed: true },
    { pid: 47, program: { errno: "ENOENT" }, directory: { errno: "EPERM" } },
  ]);
  const paths = (pid: number, size = 4096): object => openModule().paths(pid, size);
  const told = { ret: 2352, errno: 0, root: "", same: 1, pathErrno: 0 };
  expect(paths(42)).toEqual({ ...told, cwd: "/srv/me", length: 8, path: "/opt/x y" });
  expect(paths(43)).toEqual({ ret: 0, errno: ESRCH, length: 0, pathErrno: ESRCH, path: "" });
  expect(paths(44)).toEqual({ ret: 0, errno: EPERM, length: 11, pathErrno: 0, path: "/opt/theirs" });
  expect(paths(45)).toEqual({ ...told, cwd: deep.slice(-1005), same: 0, length: 1206, path: deep });
  expect(paths(45, 1024)).toMatchObject({ length: 0, pathErrno: ENOSPC });
  expect(paths(46)).toMatchObject({ cwd: "/tmp/gone", same: 0 });
  expect(paths(47)).toEqual({ ret: 0, errno: EPERM, length: 0, pathErrno: 2, path: "" });
  expect(paths(42, 1023)).toMatchObject({ length: 0, pathErrno: ENOMEM });
  expect(paths(42, 4097)).toMatchObject({ length: 0, pathErrno: EOVERFLOW });
  expect(paths(0)).toMatchObject({ length: 0, pathErrno: ESRCH });
});

rigTest("groups and sessions: of the living", () => {
  rig.sim.set({ config: { selfPid: 42 }, processes: [...BASE, { pid: 42, pgid: 9, sid: 8 }, { pid: 43, phase: "exiting" }] });
  expect([openModule().groupOf(42), openModule().groupOf(0), openModule().sessionOf(42)]).toEqual([9, 9, 8]);
  expect([openModule().groupOf(43), openModule().sessionOf(99)]).toEqual([N, N]);
});

rigTest("signals to groups", () => {
  rig.sim.set([...BASE, { pid: 42, phase: "zombie" }, { pid: 50 }, { pid: 51, pgid: 50, phase: "zombie" }]);
  expect([-42, -50, -60].map((group) => openModule().kill(group, 0))).toEqual([EPERM, 0, ESRCH]);
  expect(openModule().kill(50, 99)).toBe(EINVAL);
});

rigTest("the boot and the caller", () => {
  const config = { uid: 777, euid: 778, gid: 5, egid: 6, selfPid: 4321, selfPpid: 43, bootSession: "ABC", bootSec: 5, bootUsec: 6 };
  rig.sim.set({ config, processes: BASE });
  expect(openModule().boot()).toEqual({ errno: 0, session: "ABC", sec: 5, usec: 6 });
  expect(openModule().ids()).toEqual({ uid: 777, euid: 778, gid: 5, egid: 6, pid: 4321, ppid: 43 });
  rig.sim.set(BASE);
  expect(openModule().ids()).toEqual({ uid: ME, euid: ME, gid: 20, egid: 20, pid: process.pid, ppid: 1 });
});

rigTest("overrides: an answer that does not follow from the process", () => {
  const answers = (changes: Changes): [number, number, number] => {
    rig.sim.set([...BASE, { pid: 42, ...changes }]);
    return [statusOf(42, SHORT, 0), statusOf(42, TBSD, 0), recordOf(42)];
  };
  expect(answers({ libproc: { errno: "ESRCH" } })).toEqual([N, N, SRUN]);
  expect(answers({ libproc: { errno: "EPERM" }, tbsd: "ok" })).toEqual([P, SRUN, SRUN]);
  expect(answers({ record: "absent" })).toEqual([SRUN, SRUN, ABSENT]);
  expect(answers({ record: { errno: "EIO" } })).toEqual([SRUN, SRUN, -EIO]);
  expect(answers({ phase: "zombie", libproc: "ok" })).toEqual([SZOMB, SZOMB, SZOMB]);
  const lengths = (override: Override): [number, number] => {
    rig.sim.set([...BASE, { pid: 42, short: override, record: override }]);
    return [look(42, SHORT).ret, record(42).length];
  };
  expect([lengths("short"), lengths({ len: 10 }), lengths("natural")]).toEqual([[32, 324], [10, 10], [64, RECORD]]);
  rig.sim.set([...BASE, { pid: 42, record: { patch: [[40, 4, 4242]] }, short: { patch: [[0, 4, 43], [12, 4, 9]] } }]);
  expect(record(42).pid).toBe(4242);
  expect(look(42, SHORT)).toMatchObject({ pid: 43, status: 9 });
  rig.sim.set([...BASE, { pid: 42, listed: false, kill: { errno: "EPERM" } }, { pid: 43, phase: "reserved", listed: true }]);
  expect(openModule().listPids(4096).pids).toEqual([43, 1, 0]);
  expect([look(42, SHORT).errno, openModule().kill(42, 0), look(43, SHORT).errno]).toEqual([0, EPERM, ESRCH]);
});

rigTest("hooks: what happens between two calls", () => {
  const exiting: SimProcess = { pid: 42, phase: "exiting" };
  rig.sim.set({ processes: [...BASE, exiting], hooks: [{ fn: "proc_pidinfo", flavor: SHORT, pid: 42, vanish: true }] });
  expect([look(42, UNIQUE, 1).ret, look(42, SHORT).errno, record(42).length]).toEqual([56, ESRCH, 0]);
  expect(rig.sim.log().map(({ fn, flavor, pid, arg, size, ret, errno }) => [fn, flavor, pid, arg, size, ret, errno])).toEqual([
    ["proc_pidinfo", UNIQUE, 42, 1, 56, 56, 0],
    ["proc_pidinfo", SHORT, 42, 0, 64, 0, ESRCH],
    ["sysctl", 14, 42, 1, RECORD, 0, 0],
  ]);

  rig.sim.set({ processes: [...BASE, { pid: 42 }], hooks: [{ fn: "sysctl", pid: 42, when: "before", replace: { startSec: 200 } }] });
  const { uniqueid } = look(42, UNIQUE);
  expect([record(42).sec, look(42, UNIQUE).uniqueid > uniqueid]).toEqual([200, true]);

  rig.sim.set({ processes: [...BASE, { pid: 42 }], hooks: [{ fn: "kill", flavor: 9, pid: 42, set: { phase: "zombie", xstat: 9 } }] });
  expect([openModule().kill(42, 15), recordOf(42), openModule().kill(42, 9), recordOf(42)]).toEqual([0, SRUN, 0, SZOMB]);
});

rigTest("hooks: which call, how often, of whom, how late", () => {
  const processes = [...BASE, { pid: 41 }, { pid: 42 }];
  rig.sim.set({ processes, hooks: [{ fn: "proc_pidinfo", flavor: SHORT, pid: 42, call: 2, errno: "EINTR" }] });
  expect([1, 2, 3].map(() => look(42, SHORT).errno)).toEqual([0, EINTR, 0]);
  rig.sim.set({ processes, hooks: [{ fn: "kill", times: -1, errno: "EPERM" }] });
  expect([1, 2].map(() => openModule().kill(42, 0))).toEqual([EPERM, EPERM]);
  rig.sim.set({ processes, hooks: [{ fn: "proc_listpids", call: 2, target: 42, vanish: true, add: [{ pid: 98 }, { pid: 99 }] }] });
  expect([1, 2, 3].map(() => openModule().listPids(4096).pids)).toEqual([[42, 41, 1, 0], [42, 41, 1, 0], [99, 98, 41, 1, 0]]);
  rig.sim.set({ processes, hooks: [{ fn: "sysctlbyname", errno: "EPERM" }] });
  expect([openModule().boot().errno, openModule().boot().errno]).toEqual([EPERM, 0]);
  rig.sim.set({ processes });
  rig.sim.hooks([{ fn: "sysctl", pid: 42, delayMs: 30 }]);
  const before = performance.now();
  record(42);
  expect(performance.now() - before).toBeGreaterThanOrEqual(29);
});

rigTest("a record waits for the end of its process's fork or exec; libproc does not", async () => {
  rig.sim.set([...BASE, { pid: 42, transit: true, comm: "old" }, { pid: 43, transit: true }, { pid: 44, phase: "embryo", transit: true }]);
  expect([look(42, SHORT).comm, recordOf(44)]).toEqual(["old", ABSENT]);
  const code = `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(fileURLToPath(new URL("../index.mjs", import.meta.url)))}).then((rig) => {
      const module = rig.load(${JSON.stringify(MODULES.zig)});
      parentPort.postMessage("ready");
      parentPort.postMessage([module.record(42, 648).comm, module.record(43, 648).length]);
    });`;
  const messages: unknown[] = [];
  const worker = new Worker(code, { eval: true });
  const ended = new Promise((done) => worker.on("exit", done));
  await new Promise<void>((ready) => {
    worker.on("message", (message) => {
      messages.push(message);
      ready();
    });
  });
  await new Promise((later) => setTimeout(later, 50)); // time in which a record that does not wait would be read
  expect(messages).toEqual(["ready"]);
  rig.sim.patch(42, { transit: false, comm: "new" });
  rig.sim.remove(43);
  await ended;
  expect(messages).toEqual(["ready", ["new", 0]]);
  rig.sim.set({ config: { transitLimitMs: 10 }, processes: [...BASE, { pid: 42, transit: true }] });
  expect(recordOf(42)).toBe(SRUN);
});

rigTest("a patch changes what it names, at any time", () => {
  rig.sim.set(BASE);
  rig.sim.add([{ pid: 5, comm: "five" }, { pid: 6 }]);
  rig.sim.patch(5, { stat: SSTOP });
  expect(look(5, SHORT)).toMatchObject({ status: SSTOP, comm: "five" });
  rig.sim.patch(5, { phase: "exit-begun" });
  expect(look(5, SHORT)).toMatchObject({ status: SSTOP });
  expect(look(5, SHORT).flags & INEXIT).toBe(INEXIT);
  rig.sim.patch(5, { phase: "exiting" });
  expect([look(5, SHORT).errno, recordOf(5)]).toEqual([ESRCH, SSTOP]);
  rig.sim.patch(5, { phase: "zombie" });
  expect(recordOf(5)).toBe(SZOMB);
  rig.sim.patch(6, { pbflags: 0x55, listed: false });
  expect([look(6, SHORT).flags, openModule().listPids(4096).pids]).toEqual([0x55, [1, 0, 5]]);
  rig.sim.remove(5);
  expect(row(5)).toEqual(GONE);
  expect(() => rig.sim.patch(5, {})).toThrow(RangeError);
});

rigTest("a mistake in a script throws and changes nothing", () => {
  rig.sim.set([...BASE, { pid: 42 }]);
  const mistakes: unknown[] = [
    [{ pid: 1, pidd: 2 }],
    [{ comm: "no pid" }],
    [{ pid: -1 }],
    [{ pid: 99_999 }],
    [{ pid: "x" }],
    [{ pid: 1, uid: 1.5 }],
    [{ pid: 1, comm: 5 }],
    [{ pid: 1, phase: "dead" }],
    [{ pid: 1, record: "nope" }],
    [{ pid: 1, record: "errno" }],
    [{ pid: 1, libproc: { errno: "EWHAT" } }],
    [{ pid: 1, libproc: { error: 1 } }],
    [{ pid: 1, short: { patch: [[0, 9, 1]] } }],
    [{ pid: 1, short: { patch: [[0, 1, 1], [0, 1, 1], [0, 1, 1], [0, 1, 1], [0, 1, 1]] } }],
    [{ pid: 1, env: ["A=1"] }],
    [{ pid: 1, argv: [1] }],
    { procs: [] },
    { processes: [{ pid: 1 }], hooks: {} },
    { hooks: [{ fn: "open" }] },
    { hooks: [{ fn: "kill", when: "later" }] },
    { hooks: [{ fn: "kill", when: "after", errno: 1 }] },
    { hooks: [{ fn: "kill", set: { phase: "dead" } }] },
    { config: { uidd: 1 } },
    { config: { bootSession: 1 } },
  ];
  for (const mistake of mistakes) {
    expect(() => rig.sim.set(mistake as never), JSON.stringify(mistake)).toThrow(TypeError);
    expect(openModule().listPids(4096).pids).toEqual([42, 1, 0]);
  }
});
