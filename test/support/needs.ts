// What a test needs of the machine. An unmet need skips the test and says why, or fails it under
// PROC_SAFE_NATIVE=require.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { release } from "node:os";
import { test } from "vitest";

type Check = () => string | undefined;

const NEEDS = {
  linux: () => (process.platform === "linux" ? undefined : "needs Linux"),
  root: () => (process.getuid?.() === 0 ? undefined : "needs root: it makes namespaces or other users' processes"),
  "kernel threads": () =>
    readFileSync("/proc/2/stat", "latin1").startsWith("2 (kthreadd)") ? undefined : "needs a host, not a container",
  /** On older kernels pid_max is one number for the whole machine. */
  "pid_max of a namespace": () => kernelSince(6, 14),
  "pidfs inodes": () => kernelSince(6, 9),
  "time namespaces": () => unshareKnows("--time"),
} satisfies Record<string, Check>;

export type Need = keyof typeof NEEDS;

/** A test that runs where its needs are met. */
export function nativeTest(name: string, needs: readonly Need[], body: () => void | Promise<void>): void {
  const reason = needs.map((need) => NEEDS[need]()).find((unmet) => unmet !== undefined);
  test(name, async (context) => {
    if (reason === undefined) return body();
    if (process.env["PROC_SAFE_NATIVE"] === "require" && process.platform === "linux") {
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
  try {
    readFileSync("/proc/self/timens_offsets");
    execFileSync("unshare", [option, "true"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "needs a kernel and an unshare(1) with time namespaces";
  }
}
