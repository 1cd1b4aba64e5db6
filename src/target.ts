// Which prebuilt binary belongs to the running Node.

import { readlinkSync } from "node:fs";
import { basename } from "node:path";
import { elfInterpreter, lookAt } from "./elf.js";

/** Those that the package has a binary for. `scripts/targets.mjs` says how they are built. */
export const TARGETS: readonly string[] = [
  "darwin-arm64",
  "darwin-x64",
  "linux-arm64-gnu",
  "linux-arm64-musl",
  "linux-x64-gnu",
  "linux-x64-musl",
  "win32-x64",
];

/**
 * The name of this platform's binary, such as `linux-x64-gnu` or `darwin-arm64`. On Linux without a C library
 * that is known it is `linux-x64` alone, which no binary has.
 */
export function currentTarget(): string {
  const base = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return base;
  library ??= libraryOf(interpreter()) ?? reported();
  return library === undefined ? base : `${base}-${library}`;
}

type Library = "gnu" | "musl";

/** The running program's. */
let library: Library | undefined;

/** The C library whose dynamic linker this is: ld.so(8), or musl's. */
export function libraryOf(path: string): Library | undefined {
  const name = basename(path);
  if (/^ld-musl-|^libc\.so$/.test(name)) return "musl"; // musl's linker and library are one file
  return /^ld-(linux|\d)/.test(name) ? "gnu" : undefined;
}

/**
 * The dynamic linker of the running program: the one that it names, or the program itself, where the linker was
 * told to run another.
 */
function interpreter(): string {
  const program = runningProgram();
  try {
    return lookAt(program, elfInterpreter) || readlinkSync(program);
  } catch {
    return ""; // --permission, for one, can forbid to read any program
  }
}

function runningProgram(): string {
  const link = "/proc/self/exe";
  try {
    readlinkSync(link);
    return link;
  } catch {
    return process.execPath; // no /proc
  }
}

/**
 * By what is mapped, of which Node can report. With the network's state, which cannot be left out everywhere, that
 * may take minutes.
 */
function reported(): Library | undefined {
  const report = process.report as typeof process.report & { excludeNetwork?: boolean };
  const before = report?.excludeNetwork;
  if (before === undefined) return undefined;
  try {
    report.excludeNetwork = true;
    const { sharedObjects } = report.getReport() as { sharedObjects?: readonly string[] };
    return sharedObjects?.map(libraryOf).find((found) => found !== undefined);
  } catch {
    return undefined; // no report, no fact
  } finally {
    report.excludeNetwork = before;
  }
}
