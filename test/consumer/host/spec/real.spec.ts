// The host's own tests on real processes.

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, it } from "vitest";
import { readProcessIdentity } from "@openclaw/proc-safe/identity";
import { observe } from "../src/census.js";
import { holderOf, MARKER, takeLease } from "../src/lease.js";
import { loadLate, mayRestart } from "../src/restart.js";
import { planStop } from "../src/stop-plan.js";

const children: ChildProcess[] = [];

/** A gateway with a worker, which has said so; its pid and its worker's. */
async function gateway(marker: string): Promise<[pid: number, worker: number, child: ChildProcess]> {
  const child = spawn("sh", ["-c", "sleep 1000 & echo $!; wait"], {
    env: { ...process.env, [MARKER]: marker },
    stdio: ["ignore", "pipe", "ignore"],
  });
  children.push(child);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return [child.pid!, Number(line), child];
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const plan = planStop(readProcessIdentity(child.pid!)!);
  const exit = once(child, "exit");
  if (plan.kind === "stop") for (const { pid } of plan.order) process.kill(pid, "SIGKILL");
  await exit;
}

afterEach(async () => {
  for (const child of children.splice(0)) await stop(child);
});

it("a plan names the whole tree from below, and a planned stop leaves nobody", async () => {
  const [pid, worker, child] = await gateway("a");
  const [stranger] = await gateway("b");
  const identities = [pid, worker].map((one) => readProcessIdentity(one)!);
  const plan = planStop(identities[0]!);
  expect(plan).toMatchObject({ kind: "stop", order: [{ pid: worker }, { pid }] });
  expect(JSON.stringify(plan)).not.toContain(`"pid":${stranger},`);
  await stop(child);
  expect(planStop(identities[0]!)).toEqual({ kind: "gone" });
  expect(readProcessIdentity(stranger)).toMatchObject({ exited: false });
});

it("another process with the root's pid is not the root", async () => {
  const [pid] = await gateway("a");
  const identity = readProcessIdentity(pid)!;
  const { uniqueId: _, ...older } = { ...identity, startTimeMicros: 1, startTimeSinceBootMicros: 1 };
  expect(planStop(older)).toEqual({ kind: "gone" });
});

it("a lease is its owner's, by identity and marker, and stale when the owner is gone or its number another's", async () => {
  const mine = takeLease("a");
  expect(holderOf(mine)).toBe("mine");
  const [pid, , child] = await gateway("a");
  const owner = readProcessIdentity(pid)!;
  const lease = (changes: object, marker = "a"): string => JSON.stringify({ ...JSON.parse(mine) as object, owner: { ...owner, ...changes }, marker });
  expect(holderOf(lease({}))).toBe("held");
  expect(holderOf(lease({}, "b"))).toBe("foreign");
  expect(holderOf(lease({ bootId: "another" }))).toBe("stale");
  expect(holderOf(lease({ pidNamespace: "7" }))).toBe("unsure");
  const { uniqueId: _, ...rest } = owner;
  expect(holderOf(JSON.stringify({ owner: { ...rest, startTimeSinceBootMicros: 1 }, marker: "a" }))).toBe("stale");
  await stop(child);
  expect(holderOf(lease({}))).toBe("stale");
});

it("a restart is for descendants of the supervisor only", async () => {
  expect(mayRestart(process.ppid)).toBe("granted");
  const [pid] = await gateway("a");
  expect(mayRestart(pid)).toBe("refused");
  expect(mayRestart(pid, 1)).toBe("unknown");
});

it("the status page shows the gateway with what it runs", async () => {
  const [pid, worker] = await gateway("a");
  const seen = observe(60_000);
  expect(seen.find((one) => one.pid === pid)).toMatchObject({ parentPid: process.pid, argv: ["sh", "-c", expect.any(String)], cwd: process.cwd() });
  expect(seen.find((one) => one.pid === worker)).toMatchObject({ parentPid: pid, argv: ["sleep", "1000"] });
  for (const { startedAtMs } of seen) expect(startedAtMs === undefined || startedAtMs < Date.now() + 1_000).toBe(true);
});

it("CommonJS gets the same functions, late", () => {
  const late = loadLate();
  expect(late.readProcessIdentity(process.pid)).toEqual(readProcessIdentity(process.pid));
});
