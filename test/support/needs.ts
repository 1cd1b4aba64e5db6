// What a test needs of the machine. An unmet need skips the test and says why. Under
// PROC_SAFE_NATIVE=require it fails the test, unless it is a newer kernel, the host's own pid namespace or
// another processor, which nobody can supply, or LLVM's linker, which not every distribution has.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { release } from "node:os";
import { test } from "vitest";
import { findZig, MODULES, RIG } from "../../rig/build.mjs";
import { fixturePath } from "./paths.ts";

type Check = () => string | undefined;

const NEEDS = {
  linux: () => (process.platform === "linux" ? undefined : "needs Linux"),
  root: () => (process.getuid?.() === 0 ? undefined : "needs root: it makes namespaces or other users' processes"),
  "kernel threads": () =>
    readFileSync("/proc/2/stat", "latin1").startsWith("2 (kthreadd)") ? undefined : "needs a host, not a container",
  /** On older kernels pid_max is one number for the whole machine. */
  "pid_max of a namespace": () => kernelSince(6, 14),
  "pidfs inodes": () => kernelSince(6, 9),
  landlock: () => (runs(fixturePath("confine"), ["true"]) ? undefined : "needs a kernel with Landlock"),
  "x86_64": () => (process.arch === "x64" ? undefined : "needs x86_64: the rig runs macOS's code for it"),
  zig: () => (findZig() !== undefined && existsSync(MODULES.zig) ? undefined : "needs zig, which builds for macOS: pip install ziglang"),
  rig: () => (existsSync(RIG) ? undefined : "needs rig/build/rig.node: node rig/build.mjs"),
  lld: () => (existsSync(MODULES["lld-chained"]) ? undefined : "needs ld64.lld (lld-22)"),
  "time namespaces": () => unshareKnows("--time"),
} satisfies Record<string, Check>;

export type Need = keyof typeof NEEDS;

const OF_THE_MACHINE: readonly Need[] = ["kernel threads", "pid_max of a namespace", "pidfs inodes", "landlock", "x86_64", "lld"];

/** A test that runs where its needs are met. */
export function nativeTest(name: string, needs: readonly Need[], body: () => void | Promise<void>): void {
  const missing = needs.find((need) => NEEDS[need]() !== undefined);
  const reason = missing && NEEDS[missing]();
  test(name, async (context) => {
    if (missing === undefined || reason === undefined) return body();
    const required = process.env["PROC_SAFE_NATIVE"] === "require" && process.platform === "linux";
    if (required && !OF_THE_MACHINE.includes(missing)) {
      throw new Error(`PROC_SAFE_NATIVE=require lets no native test skip: ${reason}`);
    }
    context.skip(reason);
  });
}

function kernelSince(major: number, minor: number): string | undefined {
  const [ours = 0, sub = 0] = release().split(".").map(Number);
  const newEnough = ours > major || (ours === major && sub >= minor);
  return newEnough ? undefined : `needs Linux ${major}.${minor}`;
}

function unshareKnows(option: string): string | undefined {
  return runs("unshare", [option, "true"]) ? undefined : "needs a kernel and an unshare(1) with time namespaces";
}

function runs(program: string, words: readonly string[]): boolean {
  return spawnSync(program, words, { stdio: "ignore" }).status === 0;
}
