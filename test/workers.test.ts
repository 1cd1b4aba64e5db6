// The main thread and any number of Workers; nothing grows, nothing crashes.

import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { listProcesses } from "proc-safe";
import { nativeTest } from "./support/needs.ts";
import { scriptValue } from "./support/node.ts";

const DIST = new URL("../dist/index.js", import.meta.url).href;

function inWorker<T>(body: string): Promise<T> {
  const code = `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(DIST)}).then(({ listProcesses, readProcessIdentity }) => {
      parentPort.postMessage((() => { ${body} })());
    });
  `;
  return new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true });
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (status) => reject(new Error(`the Worker ended with ${status}`)));
  });
}

test("a Worker sees what the main thread sees", async () => {
  const [theirs] = await inWorker<ReturnType<typeof listProcesses>>(
    `return listProcesses({ pids: [${process.pid}] });`,
  );
  expect(theirs).toEqual(listProcesses({ pids: [process.pid] })[0]);
});

test("64 Workers at once", async () => {
  const body = `
    let found = 0;
    for (let census = 0; census < 20; census++) {
      found += listProcesses().filter((row) => row.pid === ${process.pid}).length;
      if (readProcessIdentity(${process.pid}).pid !== ${process.pid}) throw new Error("another");
    }
    return found;
  `;
  const answers = await Promise.all(Array.from({ length: 64 }, () => inWorker<number>(body)));
  expect(answers).toEqual(Array.from({ length: 64 }, () => 20));
});

nativeTest("Workers that are terminated during a census leave nothing behind", ["linux"], () => {
  const script = `
    import { Worker } from "node:worker_threads";
    import { readdirSync } from "node:fs";
    const count = () => readdirSync("/proc/self/fd").length;
    const code = 'import { parentPort } from "node:worker_threads"; const { listProcesses } = await import("proc-safe"); parentPort.postMessage(0); for (;;) listProcesses();';
    listProcesses();
    let before;
    for (let round = 0; round < 12; round++) {
      const workers = Array.from({ length: 4 }, () => new Worker(code, { eval: true }));
      await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once("message", resolve))));
      await Promise.all(workers.map((worker) => worker.terminate()));
      if (round === 1) before = count();
    }
    report({ leaked: count() - before, alive: listProcesses().some((row) => row.pid === process.pid) });
  `;
  expect(scriptValue(script)).toEqual({ leaked: 0, alive: true });
});

nativeTest("an addon that only Workers load and leave costs one descriptor for ever", ["linux"], () => {
  const script = `
    import { Worker } from "node:worker_threads";
    import { readdirSync, readFileSync, readlinkSync } from "node:fs";
    const held = () => readdirSync("/proc/self/fd").filter((fd) => {
      try { return readlinkSync("/proc/self/fd/" + fd) === "/proc"; } catch { return false; }
    }).length;
    const mapped = () => readFileSync("/proc/self/maps", "utf8").includes("prebuilds/");
    const code = 'import { listProcesses } from "proc-safe"; listProcesses();';
    const before = [held(), mapped()];
    for (let round = 0; round < 40; round++) {
      await new Promise((resolve, reject) => new Worker(code, { eval: true }).once("exit", resolve).once("error", reject));
    }
    report([before, [held(), mapped()]]);
  `;
  // The main thread's copy of the package loads nothing before its first call.
  expect(scriptValue(script)).toEqual([[0, false], [1, true]]);
});

nativeTest("100,000 calls grow neither memory nor descriptors", ["linux"], () => {
  const script = `
    import { readdirSync } from "node:fs";
    const count = () => readdirSync("/proc/self/fd").length;
    const round = (calls) => {
      for (let call = 0; call < calls; call++) {
        if (call % 3 === 0) readProcessIdentity(process.pid);
        else if (call % 3 === 1) listProcesses({ pids: [process.pid, 1, 2 ** 31] });
        else attempt(() => listProcesses({ timeoutMs: 1e-6 }));
      }
      gc();
      return process.memoryUsage.rss();
    };
    round(20_000);
    const before = [round(20_000), count()];
    const after = [round(100_000), count()];
    report({ grown: after[0] - before[0], descriptors: after[1] - before[1] });
  `;
  const seen = scriptValue<{ grown: number; descriptors: number }>(script, { nodeWords: ["--expose-gc"] });
  expect(seen.descriptors).toBe(0);
  expect(seen.grown).toBeLessThan(16 << 20);
});
