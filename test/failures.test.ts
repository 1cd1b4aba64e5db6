// What fails is a typed error, whole and without a trace: no partial list, no open descriptor.

import { expect } from "vitest";
import { fixturePath } from "./support/paths.ts";
import { nativeTest } from "./support/needs.ts";
import { inNamespace, scriptValue } from "./support/node.ts";

// Numbers of x86_64 and of the generic table that arm64 uses (linux/unistd.h).
const CALLS: Readonly<Record<string, number>> =
  process.arch === "x64"
    ? { getdents64: 217, tgkill: 234, pidfd_open: 434, fstatfs: 138 }
    : { getdents64: 61, tgkill: 131, pidfd_open: 434, fstatfs: 44 };
const ERRNO = { EPERM: 1, EIO: 5, ENOMEM: 12, ENOSYS: 38 };

const refusing = (call: string, errno: keyof typeof ERRNO): string[] => [
  fixturePath("refuse"),
  String(CALLS[call]),
  String(ERRNO[errno]),
];

nativeTest("EMFILE at each descriptor that a call needs, helpers not counted", ["linux", "root"], () => {
  const script = `
    import { spawn } from "node:child_process";
    import { closeSync, openSync, readdirSync } from "node:fs";
    const crowd = Array.from({ length: 150 }, () => spawn("sleep", ["1000"], { stdio: "ignore" }));
    await Promise.all(crowd.map((one) => new Promise((resolve) => one.once("spawn", resolve))));
    const count = () => readdirSync("/proc/self/fd").length;
    listProcesses();
    const before = count();
    const hold = (free) => {
      const held = [];
      try { for (;;) held.push(openSync("/dev/null", "r")); } catch (error) { if (error.code !== "EMFILE") throw error; }
      for (let index = 0; index < free; index++) closeSync(held.pop());
      const answers = [
        attempt(() => listProcesses().length > 0),
        attempt(() => listProcesses({ pids: [process.pid, 1] }).length),
        attempt(() => readProcessIdentity(process.pid)?.pid === process.pid),
      ];
      held.forEach((fd) => closeSync(fd));
      return answers;
    };
    const answers = [0, 1, 2, 3].map(hold);
    report({ answers, leaked: count() - before, pid: process.pid });
    process.exit();
  `;
  const { answers, leaked, pid } = scriptValue<{ answers: unknown[]; leaked: number; pid: number }>(script, {
    launcher: [...inNamespace("", "root"), "prlimit", "--nofile=64"],
  });
  const emfile = { code: "operation-failed", syscall: "openat", errno: "EMFILE" };
  const some = expect.objectContaining(emfile) as unknown;
  // A single read needs a second descriptor for the pidfd: a weaker identity would be no answer.
  expect(answers).toEqual([
    [emfile, some, { ...emfile, pid }],
    [some, { value: 2 }, { ...emfile, syscall: "pidfd_open", pid }],
    [{ value: true }, { value: 2 }, { value: true }],
    [{ value: true }, { value: 2 }, { value: true }],
  ]);
  expect(leaked).toBe(0);
});

nativeTest("a /proc that cannot be opened at all is tried again", ["linux"], () => {
  const script = `
    import { closeSync, openSync } from "node:fs";
    nativeStatus();
    const held = [];
    try { for (;;) held.push(openSync("/dev/null", "r")); } catch (error) { if (error.code !== "EMFILE") throw error; }
    const first = attempt(() => listProcesses());
    held.forEach((fd) => closeSync(fd));
    report([first, attempt(() => listProcesses().length > 0)]);
  `;
  expect(scriptValue(script, { launcher: ["prlimit", "--nofile=64"] })).toEqual([
    { code: "operation-failed", syscall: "openat", errno: "EMFILE" },
    { value: true },
  ]);
});

const ASK = "report([attempt(() => listProcesses()), attempt(() => listProcesses({ pids: [1] }).length)])";

nativeTest("a listing that fails is no census", ["linux"], () => {
  for (const errno of ["ENOMEM", "EIO"] as const) {
    expect(scriptValue(ASK, { launcher: refusing("getdents64", errno) })).toEqual([
      { code: "operation-failed", syscall: "getdents64", errno },
      { value: 1 },
    ]);
  }
});

nativeTest("a ground that cannot be checked is not believed", ["linux"], () => {
  const failure = { code: "operation-failed", syscall: "fstatfs", errno: "ENOMEM" };
  expect(scriptValue(ASK, { launcher: refusing("fstatfs", "ENOMEM") })).toEqual([failure, failure]);
});

nativeTest("where signals are filtered nothing is called absent, and nothing present is lost", ["linux"], () => {
  const script = `report([
    attempt(() => listProcesses({ pids: [process.pid, 999999] }).map((row) => row.owner)),
    attempt(() => readProcessIdentity(999999)),
    attempt(() => listProcesses().some((row) => row.pid === process.pid)),
  ])`;
  expect(scriptValue(script, { launcher: refusing("tgkill", "EPERM") })).toEqual([
    { value: ["same", "unknown"] },
    { code: "access-denied", pid: 999999, reason: "visibility-policy" },
    { value: true },
  ]);
});

nativeTest("a sandbox without pidfds takes the unique id only", ["linux"], () => {
  const script = "report(attempt(() => readProcessIdentity(process.pid)))";
  for (const errno of ["ENOSYS", "EPERM"] as const) {
    const { value } = scriptValue<{ value: object }>(script, { launcher: refusing("pidfd_open", errno) });
    expect(value).toMatchObject({ exited: false });
    expect("uniqueId" in value).toBe(false);
  }
});

nativeTest("where no thread can be made the census is whole all the same", ["linux", "root"], () => {
  const script = `
    import { execFileSync, spawn, spawnSync } from "node:child_process";
    const crowd = Array.from({ length: 150 }, () => spawn("sleep", ["1000"], { stdio: "ignore" }));
    await Promise.all(crowd.map((one) => new Promise((resolve) => one.once("spawn", resolve))));
    const wanted = crowd.map((one) => one.pid).sort((a, b) => a - b);
    const take = () => listProcesses().map((row) => row.pid).filter((pid) => wanted.includes(pid));
    const before = take();
    execFileSync("prlimit", ["--pid", String(process.pid), "--nproc=1"]);
    process.setgroups([]); process.setgid(65534); process.setuid(65534);
    const refused = spawnSync("true").error?.code;
    report({ refused, same: [before, take(), wanted].map(String).every((text, _, all) => text === all[0]) });
    process.exit();
  `;
  const launcher = inNamespace("", "root"); // its end is the crowd's
  expect(scriptValue(script, { launcher })).toEqual({ refused: "EAGAIN", same: true });
});
