// The loader: a Mach-O module of three linkers, and what it needs of libSystem.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { expect } from "vitest";
import { isCurrent } from "../abi.mjs";
import { MODULES, RIG } from "../build.mjs";
import { lldTest, openModule, rig, rigTest } from "./support/module.ts";
import type { Module } from "./support/module.ts";

const INDEX = fileURLToPath(new URL("../index.mjs", import.meta.url));

/** What a fresh Node says that loads the module and runs `code` on it. */
function inChild(code: string): { signal: string | null; stderr: string } {
  const program = `const rig = await import(${JSON.stringify(INDEX)}); const m = rig.load(${JSON.stringify(MODULES.zig)}); ${code}`;
  const { signal, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  return { signal, stderr };
}

/** zig's linker (0.17.1) loses these: its files have none, as LLVM's objdump sees, too. */
function checkAddends(file: string): void {
  expect(openModule(file).loading()).toMatchObject({ smallAddend: 16, largeAddend: 70_000 });
}

function tour(file: string): void {
  const { unresolved, weakMissing, initialisers } = rig.info(file);
  expect({ unresolved, weakMissing, initialisers }).toEqual({
    unresolved: ["_rig_test_unknown"],
    weakMissing: ["_rig_test_weak"],
    initialisers: 1,
  });
  const module = openModule(file);
  expect(module.loading()).toMatchObject({ initialised: 1, initialiserArguments: 1, rebased: 7, weakIsNull: 1 });
  const fresh = { changedRegisters: 0, number: 11, misaligned: 0, text: 0, zeroes: 1 };
  expect(module.localsHere()).toEqual(fresh);
  expect(module.localsHere()).toEqual({ ...fresh, number: 12, zeroes: 2 });
  expect(module.localsInThread()).toEqual(fresh);
}

rigTest("dyld info, as zig's linker writes it", () => {
  tour(MODULES.zig);
  expect(rig.info(MODULES.zig).chainedFixups).toBe(false);
});

lldTest("dyld info, as LLVM's linker writes it", () => {
  tour(MODULES["lld-dyld-info"]);
  checkAddends(MODULES["lld-dyld-info"]);
  expect(rig.info(MODULES["lld-dyld-info"]).chainedFixups).toBe(false);
});

lldTest("chained fixups and initialiser offsets", () => {
  tour(MODULES["lld-chained"]);
  checkAddends(MODULES["lld-chained"]);
  expect(rig.info(MODULES["lld-chained"]).chainedFixups).toBe(true);
});

rigTest("the numbers of Darwin's ABI are those of Apple's headers", () => {
  expect(isCurrent()).toBe(true);
});

rigTest("a stack is unwound through frames of every kind", () => {
  const { frames } = openModule();
  const least = frames(0);
  expect(least).toBe(2);
  for (const steps of [1, 2, 3, 4, 10]) expect(frames(steps)).toBe(least + 2 * steps);
});

rigTest("locks, conditions and keys", () => {
  expect(openModule().locks()).toEqual({
    counter: 80000,
    kept: 4,
    destroyed: 4,
    recursive: 0,
    trylockIsBusy: 1,
    deadlock: 1,
    timedOut: 1,
    wokenError: 0,
    neverInitialised: 1,
  });
  expect(openModule().semaphores()).toEqual({ taken: 0, empty: 1, timedOut: 1, takenAgain: 0 });
  expect(openModule().threads()).toEqual({ idError: 0, hasId: 1, isOnItsStack: 1, isItself: 1, nameError: 0 });
});

rigTest("files and folders", () => {
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), "rig-"));
  process.chdir(folder);
  try {
    expect(openModule().files()).toEqual({
      written: 8,
      size: 8,
      mode: 0o100640,
      links: 1,
      isRecent: 1,
      existed: 1,
      notThere: 1,
      isNoFolder: 1,
      text: "xyzabcde",
      isClosed: 1,
    });
    expect(openModule().folders()).toEqual({ found: 1, error: 0, hasFile: 1, notThere: 1, current: process.cwd() });
  } finally {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  }
});

rigTest("memory, clocks, names, texts", () => {
  const { realTime, ...system } = openModule().systemCalls();
  expect(system).toEqual({
    mapped: 1,
    clockRan: 1,
    ticksRan: 1,
    pageSize: 4096,
    unknownName: 1,
    random: 1,
  });
  expect(Math.abs(Number(realTime) - Date.now() / 1000)).toBeLessThan(100);
  expect(openModule().texts()).toEqual({
    known: 0,
    again: "Resource temporarily unavailable",
    unknown: 1,
    strange: "Unknown error: 9999",
    tooLong: 1,
    copied: 6,
    cut: "abc",
  });
});

rigTest("an image finds the functions of Darwin and itself, and can ask to stay", () => {
  expect(rig.info(MODULES.zig).pinned).toBe(false);
  expect(openModule().linking()).toEqual({
    knowsProcPidinfo: 1,
    knowsNoEpoll: 1,
    foundItself: 1,
    path: MODULES.zig,
    foundTheStack: 0,
    opensNothing: 1,
    pinned: 1,
  });
  expect(rig.info(MODULES.zig).pinned).toBe(true);
});

rigTest("each load registers anew, in an environment of its own, and maps a file once", () => {
  const first = openModule();
  const { images, registrations } = rig.stats();
  const second = openModule();
  expect(second).not.toBe(first);
  expect([first, second].map((module) => module.registrationsInThisEnvironment)).toEqual([1, 1]);
  const folder = mkdtempSync(join(tmpdir(), "rig-"));
  try {
    symlinkSync(MODULES.zig, join(folder, "link.node"));
    openModule(join(folder, "link.node"));
    expect(rig.stats()).toMatchObject({ images, registrations: registrations + 2 });
    copyFileSync(MODULES.zig, join(folder, "copy.node"));
    openModule(join(folder, "copy.node"));
    expect(rig.stats()).toMatchObject({ images: images + 1, registrations: registrations + 3 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

rigTest("Workers have their own registration and thread-locals, which go with them", async () => {
  openModule().localsHere();
  const { threadLocalBlocks } = rig.stats();
  const code = `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(INDEX)}).then((rig) => {
      const module = rig.load(${JSON.stringify(MODULES.zig)});
      parentPort.postMessage([module.registrationsInThisEnvironment, module.localsHere().number]);
    });`;
  const look = (): Promise<unknown> =>
    new Promise((done, failed) => {
      let message: unknown;
      const worker = new Worker(code, { eval: true });
      worker.on("message", (value) => (message = value));
      worker.on("error", failed);
      worker.on("exit", () => done(message));
    });
  expect(await Promise.all([look(), look(), look()])).toEqual([[1, 11], [1, 11], [1, 11]]);
  expect(rig.stats().threadLocalBlocks).toBe(threadLocalBlocks);
});

rigTest("install() lets require() load an image, under another platform's name", () => {
  const undo = rig.install({ platform: "darwin", arch: "arm64" });
  try {
    expect([process.platform, process.arch]).toEqual(["darwin", "arm64"]);
    const module = createRequire(import.meta.url)(MODULES.zig) as Module;
    expect(module.registrationsInThisEnvironment).toBe(1);
    expect(createRequire(import.meta.url)(RIG)).toHaveProperty("kernel"); // what is no Mach-O file loads as ever
  } finally {
    undo();
  }
  expect([process.platform, process.arch]).toEqual(["linux", "x64"]);
  expect(() => process.dlopen({ exports: {} }, MODULES.zig)).toThrow();
});

rigTest("what no image is, is refused", () => {
  expect(() => rig.load(process.execPath)).toThrow(/not a 64-bit Mach-O/);
  expect(() => rig.load("/nonexistent")).toThrow(/cannot open/);
  expect(rig.isMachO("/nonexistent")).toBe(false);
  expect(rig.isMachO(process.execPath)).toBe(false);
  expect(rig.isMachO(MODULES.zig)).toBe(true);
});

rigTest("a call of what the rig does not have says its name and aborts", () => {
  const { signal, stderr } = inChild("m.callUnknown();");
  expect(signal).toBe("SIGABRT");
  expect(stderr).toContain("_rig_test_unknown");
});

rigTest("a crash inside an image is located, and stays a crash", () => {
  const { signal, stderr } = inChild("m.crash();");
  expect(signal).toBe("SIGSEGV");
  expect(stderr).toMatch(/rig: signal 11 .*address 0x8/);
  expect(stderr).toMatch(/module-zig\.node \+ 0x[0-9a-f]+/);
});
