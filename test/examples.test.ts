// The examples do what they say, on real processes.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { inspectIdentity, readProcessIdentity } from "proc-safe";
import { start, whileHeld } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { ROOT } from "./support/paths.ts";

const scratch = mkdtempSync(join(tmpdir(), "proc-safe-examples-"));
afterAll(() => rmSync(scratch, { recursive: true }));

function example(name: string, ...words: readonly (string | number)[]): { status: number | null; out: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, "examples", `${name}.mjs`), ...words.map(String)], { encoding: "utf8" });
  expect(stderr).toBe("");
  return { status, out: stdout.trim() };
}

/** A shell with a background child that has one too, and all their pids. */
async function shells(): Promise<{ pids: number[]; closed: Promise<unknown>; end: () => void }> {
  const script = 'sh -c "sleep 1000 & echo \\$! \\$\\$; wait" & read line';
  const shell = spawn("sh", ["-c", script], { stdio: ["pipe", "pipe", "inherit"] });
  const closed = new Promise((resolve) => shell.once("exit", resolve));
  const line = await new Promise<Buffer>((resolve) => shell.stdout.once("data", resolve));
  return { pids: [shell.pid!, ...String(line).trim().split(" ").map(Number)], closed, end: () => shell.stdin.end() };
}

nativeTest("stop-tree ends a tree and nothing else", ["linux"], async () => {
  const [tree, other] = [await shells(), await shells()];
  const kept = tree.pids.map((pid) => readProcessIdentity(pid)!);
  const strangers = other.pids.map((pid) => readProcessIdentity(pid)!);
  const { status, out } = example("stop-tree", tree.pids[0]!);
  expect([status, out]).toEqual([0, "3 processes ended"]);
  await tree.closed;
  for (const identity of kept) expect(["gone", "exited"]).toContain(inspectIdentity(identity));
  for (const identity of strangers) expect(inspectIdentity(identity)).toBe("live");
  expect(example("stop-tree", other.pids[0]!).status).toBe(0);
  await other.closed;
  expect(example("stop-tree", 4294967295).status).toBe(1);
});

nativeTest("orphans finds what a run left, and takes no stranger for it", ["linux"], async () => {
  const run = await shells();
  const file = join(scratch, "run.json");
  const [top, sleep, middle] = run.pids as [number, number, number];
  expect(example("orphans", "record", file, middle, top).status).toBe(0);
  run.end();
  await run.closed;
  expect(example("orphans", file).out.split("\n")).toEqual([`${middle} live`, `${sleep} below ${middle}`]);
  const saved = JSON.parse(readFileSync(file, "utf8")) as object[];
  writeFileSync(file, JSON.stringify(saved.map((identity) => ({ ...identity, bootId: "another" }))));
  expect(example("orphans", file).out).toBe("");
  writeFileSync(file, JSON.stringify(saved.map((identity) => ({ ...identity, pidNamespace: "7" }))));
  expect(example("orphans", file).out.split("\n")).toEqual([`${middle} unknown`, `${top} unknown`]);
  expect(example("stop-tree", middle).status).toBe(0);
});

nativeTest("wait-for-children waits, and knows a zombie from a process", ["linux"], async () => {
  const run = await shells();
  expect(example("wait-for-children", run.pids[0]!, 0.2).status).toBe(1);
  expect(example("stop-tree", run.pids[2]!).status).toBe(0);
  expect(example("wait-for-children", run.pids[0]!, 60).status).toBe(0);
  run.end();
  await run.closed;
  expect(example("wait-for-children", run.pids[0]!, 1).status).toBe(2);
  await whileHeld(["zombie"], ({ parent }) => expect(example("wait-for-children", parent, 60).status).toBe(0));
});

nativeTest("lock is held by a process, not by a number", ["linux"], () => {
  const file = join(scratch, "lock");
  expect(example("lock", file, "sh", "-c", "exit 7").status).toBe(7);
  expect(readdirSync(scratch)).not.toContain("lock");
  const own = readProcessIdentity(process.pid)!;
  const held = (identity: object): number | null => {
    writeFileSync(file, JSON.stringify(identity));
    return example("lock", file, "true").status;
  };
  expect(held(own)).toBe(75);
  expect(held({ ...own, pidNamespace: "7" })).toBe(75);
  const { uniqueId: _, ...plain } = own;
  expect(held({ ...plain, startTimeSinceBootMicros: plain.startTimeSinceBootMicros! - 10_000 })).toBe(0);
  expect(held({ ...own, bootId: "another" })).toBe(0);
  expect(readdirSync(scratch).filter((name) => name.startsWith("lock"))).toEqual([]);
});

nativeTest("process-tree", ["linux"], async () => {
  const family = start("family", ["3"]);
  const { pids } = (await family.next()) as { pids: number[] };
  expect(example("process-tree", pids[0]!).out).toBe(pids.map((pid, depth) => `${"  ".repeat(depth)}${pid} "family"`).join("\n"));
  await family.end();
});
