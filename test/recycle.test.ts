// One pid, many owners: no row may be made of two processes. PROC_SAFE_ROWS asks for more rows.

import { setImmediate as breathe } from "node:timers/promises";
import { expect } from "vitest";
import { listProcesses, readProcessIdentity } from "proc-safe";
import { start } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { inNamespace, publicFixture, scriptValue } from "./support/node.ts";

const ROWS = Number(process.env["PROC_SAFE_ROWS"] ?? 20_000);

nativeTest("a recycler with alternating owners gives no row of two", ["linux", "root"], async () => {
  const recycler = start("recycler", ["set-tid"]);
  try {
    const pid = (await recycler.next())["pid"] as number;
    const counts = new Map<string, number>();
    const births = new Set<number | undefined>();
    let rows = 0;
    while (rows < ROWS) {
      for (let batch = 0; batch < 1_000; batch++) {
        const [row] = listProcesses({ pids: [pid] });
        if (row === undefined) continue;
        rows++;
        births.add(row.identity?.startTimeSinceBootMicros);
        counts.set(`${row.name} ${row.uid}`, (counts.get(`${row.name} ${row.uid}`) ?? 0) + 1);
      }
      await breathe();
    }
    expect([...counts.keys()].sort()).toEqual(["u1001 1001", "u1002 1002"]);
    expect(Math.min(...counts.values())).toBeGreaterThan(50);
    expect(births.size).toBeGreaterThan(10);
  } finally {
    await recycler.end();
  }
});

nativeTest("identities under recycling are one birth each", ["linux", "root", "pidfs inodes"], async () => {
  const recycler = start("recycler", ["set-tid"]);
  try {
    const pid = (await recycler.next())["pid"] as number;
    const births = new Map<bigint, number>();
    const enough = Date.now() + 60_000;
    for (let look = 0; (look < ROWS / 4 || births.size <= 100) && Date.now() < enough; look++) {
      const identity = readProcessIdentity(pid);
      if (identity === null) continue;
      const id = BigInt(identity.uniqueId ?? -1);
      const start = identity.startTimeSinceBootMicros ?? -1;
      expect(births.get(id) ?? start).toBe(start);
      births.set(id, start);
    }
    expect(births.size).toBeGreaterThan(100);
    const starts = [...births.keys()].sort((a, b) => (a < b ? -1 : 1)).map((id) => births.get(id));
    expect(starts, "later births do not start earlier").toEqual([...starts].sort((a = 0, b = 0) => a - b));
  } finally {
    await recycler.end();
  }
});

nativeTest("a namespace with pid_max 310 gives no row of two births", ["linux", "root", "pid_max of a namespace"], () => {
  const script = `
    import { spawn } from "node:child_process";
    import { readFileSync, writeFileSync } from "node:fs";
    writeFileSync("/proc/sys/kernel/pid_max", "310"); // this namespace's own
    const recyclers = [0, 1].map(() => spawn(process.env.RECYCLER, ["wrap"], { stdio: ["pipe", "ignore", "inherit"] }));
    const counts = {};
    const births = {};
    const kept = new Map();
    let rows = 0, backwards = 0, threads = 0, ties = 0;
    const replayed = {};
    const started = Date.now();
    // Pids come round every ten births: let the counter wrap first.
    while (!listProcesses().some((row) => row.pid >= 300) && Date.now() - started < 30_000);
    const wanting = () => kept.size > 0 && ties === 0 && Date.now() - started < 90_000;
    while (rows < ${ROWS} || wanting()) {
      for (const row of listProcesses()) {
        rows++;
        if (row.name === "node" && row.pid !== process.pid) threads++;
        // The recyclers themselves change name and owner one after the other.
        if (/^u\\d+$/.test(row.name) && !recyclers.some((recycler) => recycler.pid === row.pid)) {
          const key = row.name + " " + row.uid;
          counts[key] = (counts[key] ?? 0) + 1;
        }
      }
      for (let pid = 300; pid < 310; pid++) {
        const identity = attempt(() => readProcessIdentity(pid));
        if (identity.code !== undefined) throw new Error(JSON.stringify(identity));
        if (identity.value === null) continue;
        const { uniqueId, startTimeSinceBootMicros: start } = identity.value;
        if (uniqueId === undefined) continue;
        const key = pid + " " + uniqueId;
        if ((births[key] ??= start) !== start) backwards++;
        // What was kept of the pid's last owner, as after a restart of ours: that process is no more.
        const last = kept.get(pid);
        kept.set(pid, JSON.stringify(identity.value));
        if (last === undefined || JSON.parse(last).uniqueId === uniqueId) continue;
        if (JSON.parse(last).startTimeSinceBootMicros === start) ties++;
        const said = procSafe.compareIdentities(JSON.parse(last), identity.value) + " " + procSafe.inspectIdentity(JSON.parse(last));
        replayed[said] = (replayed[said] ?? 0) + 1;
      }
    }
    recyclers.forEach((recycler) => recycler.stdin.end());
    report({ counts, births: Object.keys(births).length, backwards, threads, ties, replayed, kept: kept.size > 0, pidMax: readFileSync("/proc/sys/kernel/pid_max", "utf8") });
  `;
  const seen = scriptValue<{
    counts: Record<string, number>;
    births: number;
    backwards: number;
    threads: number;
    ties: number;
    replayed: Record<string, number>;
    kept: boolean;
    pidMax: string;
  }>(script, { launcher: inNamespace("", "root"), env: { RECYCLER: publicFixture("recycler") } });
  expect(seen.pidMax.trim()).toBe("310");
  expect(Object.keys(seen.counts).sort()).toEqual(["u1001 1001", "u1002 1002"]);
  expect(seen.births).toBeGreaterThan(100);
  expect([seen.backwards, seen.threads]).toEqual([0, 0]);
  for (const said of Object.keys(seen.replayed)) expect(["different reused", "different gone"]).toContain(said);
  // Without inodes of pidfs nothing is kept: ties cannot be told apart.
  if (seen.kept) expect(seen.ties, "a pid came round within a tick").toBeGreaterThan(0);
});
