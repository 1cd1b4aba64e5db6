// What /proc must be, what it hides, and what it lacks: in namespaces of their own.

import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { readProcessIdentity } from "proc-safe";
import { fixturePath } from "./support/paths.ts";
import { nativeTest } from "./support/needs.ts";
import { inNamespace, publicFixture, runScript, scriptValue } from "./support/node.ts";

const LOOK = `
  const pids = [Number(process.env.STRANGER), Number(process.env.RELATIVE)];
  const [stranger, relative] = pids.map((pid) => listProcesses({ pids: [pid] })[0]);
  const visible = attempt(() => listProcesses({ visibility: "visible" }).map((row) => row.pid));
  report({
    pid: process.pid, pids, stranger, relative, visible,
    full: attempt(() => listProcesses().map((row) => row.pid)),
    identity: attempt(() => readProcessIdentity(pids[0])),
    own: attempt(() => readProcessIdentity(process.pid)),
    absent: attempt(() => readProcessIdentity(999999)),
    none: attempt(() => listProcesses({ pids: [999999] })),
  });
`;

interface Look {
  readonly pid: number;
  readonly pids: [number, number];
  readonly stranger: Record<string, unknown>;
  readonly relative: Record<string, unknown>;
  readonly visible: { value: number[] };
  readonly full: { value?: number[]; code?: string; reason?: string };
  readonly identity: Record<string, unknown>;
  readonly own: { value: Record<string, unknown> };
  readonly absent: unknown;
  readonly none: unknown;
}

function look(procOptions: string, user: "root" | "nobody"): Look {
  const seen = scriptValue<Look>(LOOK, { launcher: inNamespace(procOptions, user) });
  // Whatever is hidden: absence stays provable, and nobody hides from himself.
  expect(seen.absent).toEqual({ value: null });
  expect(seen.none).toEqual({ value: [] });
  expect(seen.own.value["pid"]).toBe(seen.pid);
  expect(seen.visible.value).toContain(seen.pid);
  return seen;
}

const HIDDEN = { code: "access-denied", reason: "visibility-policy" };

nativeTest("an open /proc shows everything to everyone", ["linux", "root"], () => {
  const { pids, stranger, relative, full, identity } = look("", "nobody");
  expect(full.value).toEqual(expect.arrayContaining([1, ...pids]));
  expect(stranger).toMatchObject({ owner: "different", uid: 0, name: "sleep", parentPid: 1 });
  expect(relative).toMatchObject({ owner: "same", uid: 65534, name: "sleep" });
  expect(identity).toMatchObject({ value: { pid: pids[0], parentPid: 1 } });
});

nativeTest("hidepid=1: the owner and nothing else", ["linux", "root"], () => {
  const { pids, stranger, relative, full, identity } = look("hidepid=1", "nobody");
  expect(stranger).toEqual({ pid: pids[0], owner: "different", uid: 0 });
  expect(relative).toMatchObject({ owner: "same", state: "running" });
  expect(full.value).toEqual(expect.arrayContaining([1, ...pids]));
  expect(identity).toEqual({ code: "access-denied", pid: pids[0], syscall: "openat", errno: "EPERM" });
});

for (const option of ["hidepid=2", "hidepid=invisible", "hidepid=4", "hidepid=ptraceable"]) {
  nativeTest(`${option}: hidden is not gone, and a full census is not whole`, ["linux", "root"], () => {
    const { pids, stranger, relative, full, visible, identity } = look(option, "nobody");
    expect(full).toEqual({ code: "incomplete", reason: "visibility-policy" });
    expect(visible.value).not.toContain(pids[0]);
    expect(visible.value).toContain(pids[1]);
    expect(stranger).toEqual({ pid: pids[0], owner: "unknown" });
    expect(relative).toMatchObject({ owner: "same", state: "running", name: "sleep" });
    expect(identity["code"]).toBe("access-denied");
    if (/2|invisible/.test(option)) expect(identity).toEqual({ ...HIDDEN, pid: pids[0] });
  });
}

nativeTest("hidepid=2: a process of our own user that is not dumpable is hidden, not gone", ["linux", "root"], () => {
  const script = `
    import { spawn } from "node:child_process";
    import { createInterface } from "node:readline";
    const child = spawn(process.env.STATES, ["unreadable"], { stdio: ["pipe", "pipe", "inherit"] });
    for await (const line of createInterface({ input: child.stdout })) {
      const { pid } = JSON.parse(line);
      process.kill(pid, 0);
      report([pid, listProcesses({ pids: [pid] }), attempt(() => readProcessIdentity(pid))]);
      child.stdin.end();
    }
  `;
  const seen = scriptValue<[number, unknown, unknown]>(script, {
    launcher: inNamespace("hidepid=2", "nobody"),
    env: { STATES: publicFixture("states") },
  });
  const [pid] = seen;
  expect(seen).toEqual([pid, [{ pid, owner: "unknown" }], { ...HIDDEN, pid }]);
});

nativeTest("hidepid=2 hides nothing from root, or from the group of the mount", ["linux", "root"], () => {
  const asRoot = look("hidepid=2", "root");
  expect(asRoot.full.value).toEqual(expect.arrayContaining([1, ...asRoot.pids]));
  const asMember = look("hidepid=2,gid=65534", "nobody");
  expect(asMember.full.value).toEqual(expect.arrayContaining([1, ...asMember.pids]));
  expect(asMember.stranger).toMatchObject({ owner: "different", uid: 0, state: "running" });
  const noHelp = look("hidepid=4,gid=65534", "nobody");
  expect(noHelp.full).toEqual({ code: "incomplete", reason: "visibility-policy" });
});

nativeTest("subset=pid: no boot id, and nothing else is lost", ["linux", "root"], () => {
  const { pids, stranger, full, own } = look("subset=pid", "nobody");
  expect(full.value).toEqual(expect.arrayContaining([1, ...pids]));
  expect(stranger).toMatchObject({ owner: "different", uid: 0, state: "running" });
  expect("bootId" in own.value).toBe(false);
  expect(own.value).toMatchObject({ pidNamespace: expect.stringMatching(/^\d+$/) as string });
  const both = look("subset=pid,hidepid=2", "nobody");
  expect(both.full).toEqual({ code: "incomplete", reason: "visibility-policy" });
});

nativeTest("a remount is noticed by the next census", ["linux", "root"], () => {
  const script = `
    import { execFileSync } from "node:child_process";
    const before = attempt(() => listProcesses().length > 0);
    execFileSync("mount", ["-o", "remount,hidepid=2", "/proc"]);
    process.setgroups([]); process.setgid(65534); process.setuid(65534);
    report([before, attempt(() => listProcesses())]);
  `;
  expect(scriptValue(script, { launcher: inNamespace("", "root") })).toEqual([
    { value: true },
    { code: "incomplete", reason: "visibility-policy" },
  ]);
});

nativeTest("capabilities that a Landlock domain overrules see nothing hidden", ["linux", "root", "landlock"], () => {
  for (const option of ["hidepid=2,gid=77", "hidepid=4"]) {
    const launcher = [...inNamespace(option, "root"), fixturePath("confine")];
    const seen = scriptValue<Look>(LOOK, { launcher });
    expect(seen.identity).toEqual({ ...HIDDEN, pid: seen.pids[0] });
    expect(seen.full).toEqual({ code: "incomplete", reason: "visibility-policy" });
    expect(seen.visible.value).toEqual([seen.pid]);
  }
});

nativeTest("a policy that changes behind a detached mount is no secret", ["linux", "root"], () => {
  const script = `
    import { execFileSync } from "node:child_process";
    process.setgroups([]); process.setegid(65534); process.seteuid(65534);
    const before = attempt(() => listProcesses().length > 0);
    process.seteuid(0);
    execFileSync("sh", ["-c", 'umount --lazy /proc; mount -o remount,hidepid=2 "$OTHER"']);
    process.seteuid(65534);
    const behind = attempt(() => listProcesses());
    process.seteuid(0);
    execFileSync("umount", ["--lazy", process.env.OTHER]);
    process.seteuid(65534);
    report([before, behind, attempt(() => listProcesses())]);
  `;
  const other = mkdtempSync(join(tmpdir(), "proc-safe-other-"));
  const bind = ["sh", "-c", 'mount --bind /proc "$OTHER"; "$@"', "sh"];
  const seen = scriptValue<unknown[]>(script, { launcher: [...inNamespace("", "root"), ...bind], env: { OTHER: other } });
  rmdirSync(other);
  const hidden = { code: "incomplete", reason: "visibility-policy" };
  expect(seen).toEqual([{ value: true }, hidden, hidden]);
});

const ASK = `report([
  attempt(() => listProcesses()),
  attempt(() => listProcesses({ pids: [1] })),
  attempt(() => readProcessIdentity(process.pid)),
  isSupported(),
])`;

function refused(reason: string): unknown[] {
  const error = { code: "unsupported-platform", reason };
  return [error, error, error, true];
}

nativeTest("the /proc of another pid namespace is refused", ["linux", "root"], () => {
  const launcher = ["unshare", "--pid", "--fork", "--kill-child"];
  expect(scriptValue(ASK, { launcher })).toEqual(refused("foreign-procfs"));
});

nativeTest("also where our number is the same in both", ["linux", "root"], () => {
  const { value } = runScript(`
    import { readlinkSync } from "node:fs";
    report([String(process.pid) === readlinkSync("/proc/self"), attempt(() => readProcessIdentity(process.pid))]);
  `, { launcher: [fixturePath("same-number")] });
  expect(value).toEqual([true, { code: "unsupported-platform", reason: "foreign-procfs" }]);
});

nativeTest("a /proc that is no procfs is refused", ["linux", "root"], () => {
  const launcher = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc; "$@"', "sh"];
  expect(scriptValue(ASK, { launcher })).toEqual(refused("procfs-unavailable"));
});

nativeTest("a failed check is made again; a held /proc outlives its mount", ["linux", "root"], () => {
  const script = `
    import { execFileSync } from "node:child_process";
    const first = attempt(() => listProcesses({ pids: [process.pid] }).length);
    execFileSync("umount", ["/proc"]);
    const second = attempt(() => listProcesses({ pids: [process.pid] }).length);
    execFileSync("umount", ["--lazy", "/proc"]);
    const third = attempt(() => listProcesses().some((row) => row.pid === process.pid));
    report([first, second, third, attempt(() => readProcessIdentity(process.pid).pid === process.pid)]);
  `;
  const launcher = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc; "$@"', "sh"];
  expect(scriptValue(script, { launcher })).toEqual([
    { code: "unsupported-platform", reason: "procfs-unavailable" },
    { value: 1 },
    { value: true },
    { value: true },
  ]);
});

nativeTest("a descriptor of /proc that someone closed is opened again", ["linux", "root"], () => {
  const script = `
    import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
    const ours = () => readdirSync("/proc/self/fd").filter((fd) => {
      try { return readlinkSync("/proc/self/fd/" + fd) === "/proc"; } catch { return false; }
    });
    listProcesses();
    const [held, ...more] = ours();
    closeSync(Number(held));
    const other = openSync("/", "r"); // takes the number
    report([more.length, other === Number(held), listProcesses({ pids: [process.pid] }).length, readlinkSync("/proc/self/fd/" + other)]);
  `;
  expect(scriptValue(script)).toEqual([0, true, 1, "/"]);
});

nativeTest("in a user namespace that maps one user, the others' number is no fact", ["linux", "root"], () => {
  const script = `
    const [stranger, relative] = [process.env.STRANGER, process.env.RELATIVE].map((pid) => listProcesses({ pids: [Number(pid)] })[0]);
    report({ stranger, relative, own: listProcesses({ pids: [process.pid] })[0] });
  `;
  const launcher = [...inNamespace("", "root"), "unshare", "--user", "--map-root-user"];
  const rows = scriptValue<Record<string, Record<string, unknown>>>(script, { launcher });
  expect(rows["stranger"]).toMatchObject({ owner: "same", uid: 0, state: "running" });
  expect(rows["own"]).toMatchObject({ owner: "same", uid: 0 });
  expect(rows["relative"]).toMatchObject({ owner: "unknown", state: "running", name: "sleep" });
  expect("uid" in (rows["relative"] ?? {})).toBe(false);
});

nativeTest("the pid namespace is in the identity", ["linux", "root"], () => {
  const { own } = look("", "root");
  const ours = readProcessIdentity(process.pid);
  expect(own.value["bootId"]).toBe(ours?.bootId);
  expect(own.value["pidNamespace"]).not.toBe(ours?.pidNamespace);
});
