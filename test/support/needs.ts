// What a test needs of the machine. An unmet need skips the test and says why. Under
// PROC_SAFE_NATIVE=require it fails the test, unless it is a newer kernel, the host's own pid namespace or
// another processor, which nobody can supply. What only builds and runs other systems' binaries fails under
// PROC_SAFE_CROSS=require.

import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, statSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { findZig, MODULES, RIG } from "../../rig/build.mjs";
import { fixturePath, ROOT } from "./paths.ts";

/** Tests in the rig change process.platform. */
const HOST = process.platform;

type Check = () => string | undefined;

const NEEDS = {
  linux: () => (HOST === "linux" ? undefined : "needs Linux"),
  darwin: () => (HOST === "darwin" ? undefined : "needs macOS; elsewhere there is the rig"),
  root: () => (process.getuid?.() === 0 ? undefined : "needs root: it makes namespaces or other users' processes"),
  "kernel threads": () => (nameOf(2) === "kthreadd" ? undefined : "needs a host, not a container"),
  /** On older kernels pid_max is one number for the whole machine. */
  "pid_max of a namespace": () => kernelSince(6, 14),
  "pidfs inodes": () => kernelSince(6, 9),
  landlock: () => (runs(fixturePath("confine"), ["true"]) ? undefined : "needs a kernel with Landlock"),
  "x86_64": () => (process.arch === "x64" ? undefined : "needs x86_64: the rig runs macOS's code for it"),
  zig: () => (findZig() !== undefined && existsSync(MODULES.zig) ? undefined : "needs zig, which builds for macOS: pip install ziglang"),
  rig: () => (existsSync(RIG) ? undefined : "needs rig/build/rig.node: node rig/build.mjs"),
  lld: () => (existsSync(MODULES["lld-chained"]) ? undefined : "needs ld64.lld (lld-22)"),
  "darwin-x64": () => freshBinary("darwin-x64"),
  "linux-arm64-gnu": () => freshBinary("linux-arm64-gnu"),
  "linux-arm64-musl": () => freshBinary("linux-arm64-musl"),
  "win32-x64": () => freshBinary("win32-x64"),
  fuse: () => (opens("/dev/fuse") ? undefined : "needs /dev/fuse: a file system that does not answer holds a process"),
  "time namespaces": () => unshareKnows("--time"),
} satisfies Record<string, Check>;

export type Need = keyof typeof NEEDS;

const OF_THE_MACHINE: readonly Need[] = ["kernel threads", "pid_max of a namespace", "pidfs inodes", "landlock", "fuse", "x86_64"];
/** LLVM's linker is in no list of what must be installed: not every distribution has it. */
const OF_OTHER_SYSTEMS: readonly Need[] = ["zig", "rig", "darwin-x64", "linux-arm64-gnu", "linux-arm64-musl", "win32-x64"];
const NEVER_REQUIRED: readonly Need[] = [...OF_THE_MACHINE, "linux", "darwin", "lld"];
const SUPPORTED: readonly string[] = ["linux", "darwin", "win32"];

/** A test that runs where its needs are met. */
export function nativeTest(name: string, needs: readonly Need[], body: () => void | Promise<void>): void {
  const missing = needs.find((need) => NEEDS[need]() !== undefined);
  const reason = missing && NEEDS[missing]();
  test(name, async (context) => {
    if (missing === undefined || reason === undefined) return body();
    const variable = OF_OTHER_SYSTEMS.includes(missing) ? "PROC_SAFE_CROSS" : "PROC_SAFE_NATIVE";
    if (process.env[variable] === "require" && SUPPORTED.includes(HOST) && !NEVER_REQUIRED.includes(missing)) {
      throw new Error(`${variable}=require lets no such test skip: ${reason}`);
    }
    context.skip(reason);
  });
}

/** A binary that is older than its sources shows what they were. */
function freshBinary(name: string): string | undefined {
  const native = join(ROOT, "native");
  const files = readdirSync(native, { recursive: true, encoding: "utf8" }).filter((path) => /src|shim|build\.rs$/.test(path));
  const sources = files.map((path) => statSync(join(native, path)).mtimeMs);
  const built = statSync(join(ROOT, `prebuilds/${name}.node`), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return built > Math.max(...sources) ? undefined : `needs prebuilds/${name}.node of these sources: node scripts/cross.mjs ${name}`;
}

/** `""` where nobody has the pid. */
function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return "";
    throw error;
  }
}

function opens(file: string): boolean {
  try {
    closeSync(openSync(file, "r+"));
    return true;
  } catch {
    return false;
  }
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
