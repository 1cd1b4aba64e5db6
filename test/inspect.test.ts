// The census on real processes.

import { spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listProcesses, readProcessIdentity } from "proc-safe";
import type { ProcessSnapshot } from "proc-safe";
import { start, whileHeld } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { FIXTURES, fixturePath, ROOT } from "./support/paths.ts";
import { darwinCompiler } from "../rig/build.mjs";

function rowOf(pid: number): ProcessSnapshot {
  const [row, ...more] = listProcesses({ pids: [pid] });
  expect(more).toEqual([]);
  if (row === undefined) throw new Error(`no row for ${pid}`);
  const full = listProcesses().find((one) => one.pid === pid);
  expect(full, "the full census says the same").toEqual(row);
  return row;
}

/** Fields behind the name in /proc/pid/stat; the first is the state. */
function statFields(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  return text.slice(text.lastIndexOf(")") + 2).trim().split(" ");
}

test("a census is frozen plain data in ascending order, with the caller in it", () => {
  const rows = listProcesses();
  expect(rows.map((row) => row.pid)).toEqual([...rows].map((row) => row.pid).sort((a, b) => a - b));
  expect(new Set(rows.map((row) => row.pid)).size).toBe(rows.length);
  expect(Object.isFrozen(rows)).toBe(true);
  for (const row of rows) {
    expect(Object.isFrozen(row)).toBe(true);
    expect(Object.getPrototypeOf(row)).toBe(Object.prototype);
    expect(row.identity === undefined || Object.isFrozen(row.identity)).toBe(true);
    expect(Object.values(row)).not.toContain(undefined);
    expect(row.parentPid).toBe(row.identity?.parentPid);
  }
  expect(structuredClone(rows)).toEqual(rows);
  expect(JSON.parse(JSON.stringify(rows))).toEqual(rows);
  expect(rows.find((row) => row.pid === process.pid)?.parentPid).toBe(process.ppid);
});

nativeTest("our own row has every fact, and they are ours", ["linux"], () => {
  const row = rowOf(process.pid);
  const fields = statFields(process.pid);
  expect(row).toMatchObject({
    pid: process.pid,
    owner: "same",
    parentPid: process.ppid,
    uid: process.geteuid?.(),
    name: readFileSync("/proc/self/comm", "utf8").slice(0, -1),
    state: "running",
  });
  // Those led by a process outside our pid namespace read 0 there: no fact.
  expect([row.processGroupId ?? 0, row.sessionId ?? 0]).toEqual([Number(fields[2]), Number(fields[3])]);
  expect("exiting" in row).toBe(false);
  const { identity } = row;
  expect(identity).toMatchObject({
    pid: process.pid,
    parentPid: process.ppid,
    startTimeResolutionMicros: 10_000,
    startTimeSinceBootMicros: Number(fields[19]) * 10_000,
    bootId: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    exited: false,
  });
  expect(identity?.pidNamespace).toMatch(/^\d+$/);
  expect("uniqueId" in (identity ?? {})).toBe(false);
  expect("timeNamespace" in (identity ?? {})).toBe(false);
  const age = Date.now() * 1000 - (identity?.startTimeMicros ?? 0);
  expect(Math.abs(age - process.uptime() * 1e6)).toBeLessThan(5e6);
});

nativeTest("what /proc says before and after, the census says between", ["linux"], async () => {
  const snapshot = (): Map<number, string> => {
    const found = new Map<number, string>();
    for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
      try {
        const fields = statFields(Number(name));
        found.set(Number(name), [1, 2, 3, 19].map((index) => fields[index]).join(" "));
      } catch (error) {
        if (!["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
      }
    }
    return found;
  };
  const family = start("family", ["5"]);
  await family.next();
  const before = snapshot();
  const rows = new Map(listProcesses().map((row) => [row.pid, row]));
  const after = snapshot();
  await family.end();
  let compared = 0;
  for (const [pid, facts] of before) {
    if (after.get(pid) !== facts) continue;
    const row = rows.get(pid);
    const born = (row?.identity?.startTimeSinceBootMicros ?? 0) / 10_000;
    expect([row?.parentPid, row?.processGroupId ?? 0, row?.sessionId ?? 0, born].join(" "), `pid ${pid}`).toBe(facts);
    compared++;
  }
  expect(compared).toBeGreaterThan(5);
});

test("a selection collapses duplicates, drops the absent and keeps the order", () => {
  const pids = [process.pid, process.ppid, process.pid, 2 ** 31, 2 ** 32 - 1];
  const rows = listProcesses({ pids });
  expect(rows.map((row) => row.pid)).toEqual([process.ppid, process.pid].sort((a, b) => a - b));
  expect(listProcesses({ pids: [] })).toEqual([]);
});

nativeTest("numbers that no process has on Linux are absent", ["linux"], () => {
  expect(listProcesses({ pids: [0, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1] })).toEqual([]);
});

test("a million pids, mostly duplicates", () => {
  const pids = Array.from({ length: 1_000_000 }, (_, index) => (index % 2 ? process.pid : 1 + (index % 500)));
  const rows = listProcesses({ pids });
  expect(rows.some((row) => row.pid === process.pid)).toBe(true);
  expect(rows.length).toBeLessThanOrEqual(501);
});

nativeTest("running", ["linux"], () =>
  whileHeld(["running"], ({ pid, parent }) => {
    expect(rowOf(pid)).toMatchObject({ parentPid: parent, owner: "same", state: "running", name: "states" });
  }),
);

nativeTest("stopped", ["linux"], () =>
  whileHeld(["stopped"], ({ pid, parent }) => {
    expect(rowOf(pid)).toMatchObject({ parentPid: parent, state: "stopped", identity: { exited: false } });
  }),
);

nativeTest("traced: stopped, and the parent is the real one", ["linux"], () =>
  whileHeld(["traced"], ({ pid, parent }) => {
    expect(rowOf(pid)).toMatchObject({ parentPid: parent, state: "stopped", identity: { parentPid: parent } });
  }),
);

nativeTest("a zombie keeps its facts and is not exiting", ["linux"], () =>
  whileHeld(["zombie"], ({ pid, parent }) => {
    const row = rowOf(pid);
    expect(row).toMatchObject({ parentPid: parent, owner: "same", uid: process.geteuid?.(), state: "zombie" });
    expect(row.identity).toMatchObject({ exited: true, parentPid: parent });
    expect("exiting" in row).toBe(false);
    expect(row.processGroupId ?? 0).toBe(Number(statFields(parent)[2]));
  }),
);

nativeTest("the exit window keeps every fact", ["linux", "root"], () =>
  whileHeld(["exiting"], ({ pid, parent }) => {
    const row = rowOf(pid);
    expect(row).toMatchObject({ parentPid: parent, owner: "same", uid: 0, state: "running", exiting: true });
    expect(row.identity).toMatchObject({ exited: false, parentPid: parent });
    expect(readProcessIdentity(pid)).toMatchObject({ pid, exited: false });
  }),
);

nativeTest("a dead leader with a live thread is a live process", ["linux"], () =>
  whileHeld(["leader-dead"], ({ pid, parent }) => {
    const row = rowOf(pid);
    expect(row).toMatchObject({ parentPid: parent, state: "running", identity: { exited: false } });
    expect("exiting" in row).toBe(false);
  }),
);

/** A slow proof asks for more looks. */
const LOOKS = Number(process.env["PROC_SAFE_ROWS"] ?? 20_000);

for (const leader of ["leader-stays", "leader-exits"]) {
  nativeTest(`execution by another thread never looks like death or exit (${leader})`, ["linux"], () =>
    whileHeld(["exec", leader], ({ pid, parent }) => {
      const seen = new Set<string>();
      for (let look = 0; look < LOOKS; look++) {
        const [row] = listProcesses({ pids: [pid] });
        const { parentPid, state, exiting, identity } = row ?? {};
        seen.add(JSON.stringify([parentPid, state, exiting ?? false, identity?.exited, identity?.startTimeSinceBootMicros]));
      }
      const born = readProcessIdentity(pid)?.startTimeSinceBootMicros;
      expect([...seen]).toEqual([JSON.stringify([parent, "running", false, false, born])]);
    }),
  );
}

nativeTest("a thread is no process", ["linux"], () =>
  whileHeld(["thread"], ({ pid, helper }) => {
    expect(readFileSync(`/proc/${helper}/stat`, "latin1"), "procfs opens it").toContain(`${helper} (`);
    expect(listProcesses({ pids: [helper] })).toEqual([]);
    expect(readProcessIdentity(helper)).toBeNull();
    expect(rowOf(pid).pid).toBe(pid);
    expect(listProcesses().some((row) => row.pid === helper)).toBe(false);
  }),
);

const NAMES: readonly (readonly [string, string])[] = [
  ["a closing parenthesis and fields", Buffer.from("evil ) Z 1 (x").toString("hex")],
  ["a newline", Buffer.from("a\nb").toString("hex")],
  ["spaces", Buffer.from("  a  b  ").toString("hex")],
  ["fifteen bytes of 0xff", "ff".repeat(15)],
  ["a cut character", Buffer.from("fünfzehn-zeich").toString("hex") + "c3"],
  ["an escape sequence", Buffer.from("\u001b[31mred").toString("hex")],
  ["a byte order mark", "efbbbf41"],
  ["nothing", ""],
];

for (const [what, hex] of NAMES) {
  nativeTest(`a name of ${what}`, ["linux"], () =>
    whileHeld(["named", hex], ({ pid, parent }) => {
      const row = rowOf(pid);
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      expect(row.name).toBe(decoder.decode(Buffer.from(hex, "hex").subarray(0, 15)));
      expect(row).toMatchObject({ parentPid: parent, state: "running" });
    }),
  );
}

nativeTest("the owner is the effective user, though the stat file's owner reads 0", ["linux", "root"], () =>
  whileHeld(["owned", "1000", "1001", "1002"], ({ pid }) => {
    expect(rowOf(pid)).toMatchObject({ uid: 1001, owner: "different" });
  }),
);

nativeTest("kernel threads have long names and no group or session", ["linux", "kernel threads"], () => {
  const kernel = listProcesses().filter((row) => row.parentPid === 2);
  expect(kernel.length).toBeGreaterThan(0);
  for (const row of kernel) {
    expect("processGroupId" in row || "sessionId" in row).toBe(false);
  }
  expect(kernel.some((row) => (row.name?.length ?? 0) > 15)).toBe(true);
});

test("a deadline that cannot be met is a timeout, not a part of a census", () => {
  expect(() => listProcesses({ timeoutMs: 1e-6 })).toThrow(expect.objectContaining({ code: "timeout" }));
  expect(() => listProcesses({ pids: [process.pid], timeoutMs: Number.MIN_VALUE })).toThrow(
    expect.objectContaining({ code: "timeout" }),
  );
  expect(listProcesses({ timeoutMs: Number.MAX_VALUE }).length).toBeGreaterThan(0);
});

test("a child is in every census from its start to its reaping, and in none after", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], { stdio: "ignore" });
  const pid = child.pid ?? 0;
  expect(listProcesses().find((row) => row.pid === pid)).toMatchObject({ parentPid: process.pid });
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGKILL");
  await closed;
  // On Windows a handle keeps it: Node's own, until it is closed.
  const isLeft = (row: ProcessSnapshot): boolean => row.pid === pid && !(process.platform === "win32" && row.state === "zombie");
  expect(listProcesses({ pids: [pid] }).filter(isLeft)).toEqual([]);
  expect(listProcesses().filter(isLeft)).toEqual([]);
});

nativeTest("under churn no row names a parent that has no row", ["linux"], async () => {
  const churn = start("recycler", ["wrap"]);
  try {
    await churn.next();
    for (let census = 0; census < 200; census++) {
      const rows = listProcesses();
      const pids = new Set(rows.map((row) => row.pid));
      for (const row of rows) {
        expect(row.parentPid === 0 || pids.has(row.parentPid ?? 0), JSON.stringify(row)).toBe(true);
      }
    }
  } finally {
    await churn.end();
  }
});

function proof(script: string): { stages: Record<string, unknown>[]; total: Record<string, unknown>; status: number | null } {
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(ROOT, script)], { encoding: "utf8" });
  expect(stderr).toBe("");
  const lines = stdout.trim().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
  return { stages: lines.slice(0, -1), total: lines.at(-1) ?? {}, status };
}

for (const [system, needs] of [["linux", ["linux", "root"]], ["darwin", ["darwin"]]] as const) {
  nativeTest(`a child from running to gone, on the main thread and in a Worker: ${system}`, needs, () => {
    const { stages, total, status } = proof(`scripts/${system}-census-proof.mjs`);
    expect(stages.filter((stage) => "error" in stage)).toEqual([]);
    expect([total["passed"], total["failed"], status]).toEqual([10, 0, 0]);
  });
}

nativeTest("a proof of stages that are not there is none", ["linux"], () => {
  const core = new URL("../scripts/census-proof.mjs", import.meta.url).href;
  const fixture = join(ROOT, "test/support/lying-fixture.sh");
  const script = `import { proveCensus } from "${core}"; await proveCensus(${JSON.stringify(fixture)});`;
  const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  const total = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Record<string, unknown>;
  expect([total["passed"], total["failed"], status]).toEqual([2, 8, 1]);
});

nativeTest("the programs for a Mac compile against Apple's headers", ["linux", "zig"], () => {
  for (const name of ["darwin-stages", "darwin-probe"]) {
    for (const machine of ["x86_64", "aarch64"] as const) {
      const program = fixturePath(`${name}-${machine}`);
      darwinCompiler(["-O1", "-Wall", "-Wextra", "-Werror", "-o", program, join(FIXTURES, `${name}.c`)], machine);
      expect(readFileSync(program).readUInt32LE(0)).toBe(0xfeedfacf);
    }
  }
});
