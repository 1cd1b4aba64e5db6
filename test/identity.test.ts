// Which process a pid is.

import { spawn } from "node:child_process";
import { uptime } from "node:os";
import { expect, test } from "vitest";
import { isSupported, listProcesses, readProcessIdentity } from "proc-safe";
import { whileHeld } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { scriptValue } from "./support/node.ts";

test("isSupported", () => {
  expect(isSupported()).toBe(true);
});

nativeTest("the identity of a row, and a unique id besides", ["linux", "pidfs inodes"], () => {
  const identity = readProcessIdentity(process.pid);
  const [row] = listProcesses({ pids: [process.pid] });
  const { uniqueId, ...rest } = identity ?? {};
  expect(rest).toEqual(row?.identity);
  expect(uniqueId).toMatch(/^[1-9]\d*$/);
  expect(readProcessIdentity(process.pid)).toEqual(identity);
  expect(Object.isFrozen(identity)).toBe(true);
});

nativeTest("unique ids are ordered by birth and differ", ["linux", "pidfs inodes"], async () => {
  const ids: bigint[] = [];
  for (let birth = 0; birth < 3; birth++) {
    const child = spawn("sleep", ["1000"], { stdio: "ignore" });
    await new Promise((resolve) => child.once("spawn", resolve));
    ids.push(BigInt(readProcessIdentity(child.pid ?? 0)?.uniqueId ?? -1));
    const closed = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await closed;
    expect(readProcessIdentity(child.pid ?? 0)).toBeNull();
  }
  expect(ids).toEqual([...ids].sort((a, b) => (a < b ? -1 : 1)));
  expect(new Set(ids).size).toBe(3);
});

nativeTest("a zombie has exited and is the same process", ["linux"], () =>
  whileHeld(["zombie"], ({ pid, parent }) => {
    expect(readProcessIdentity(pid)).toMatchObject({ pid, parentPid: parent, exited: true });
  }),
);

nativeTest("the births of one process agree in all calls and all processes", ["linux"], () => {
  const births = new Set<number | undefined>();
  for (let call = 0; call < 500; call++) births.add(readProcessIdentity(1)?.startTimeMicros);
  for (let call = 0; call < 3; call++) {
    births.add(scriptValue<number>("report(readProcessIdentity(1).startTimeMicros)"));
  }
  expect(births.size).toBe(1);
});

nativeTest("a time namespace moves no epoch time and is said", ["linux", "root", "time namespaces"], () => {
  const ours = readProcessIdentity(1);
  // The kernel lets no boottime clock go below zero: of all processes, a host's pid 1 alone is surely
  // born before it.
  for (const offset of [1_000_000, -Math.floor(uptime() / 2)]) {
    const launcher = ["unshare", "--time", "--boottime", String(offset), "--fork"];
    const theirs = scriptValue<NonNullable<typeof ours>>("report(readProcessIdentity(1))", { launcher });
    expect(theirs.timeNamespace).toMatch(/^\d+$/);
    expect(theirs.uniqueId).toBe(ours?.uniqueId);
    const moved = (theirs.startTimeSinceBootMicros ?? 0) - (ours?.startTimeSinceBootMicros ?? 0);
    // Below the namespace's zero the kernel's number wraps, and its tick is cut from the other side.
    expect(Math.abs(moved - offset * 1e6)).toBeLessThanOrEqual(10_000);
    expect(Math.abs(theirs.startTimeMicros - (ours?.startTimeMicros ?? 0))).toBeLessThanOrEqual(10_000);
  }
});
