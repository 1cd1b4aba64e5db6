// Why the native binary cannot be used, and what a person can do. Looks at the file; loads nothing.

import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { ProcSafeErrorReason } from "./errors.js";

/** A reason of the closed set, and a sentence for a person. */
export interface LoadFailure {
  readonly reason: ProcSafeErrorReason;
  readonly advice: string;
}

/** Explains why Node could not load the file at `path`, which is to be the one for `target`. */
export function explainLoadFailure(path: string, target: string, cause: unknown): LoadFailure {
  const { code, message } = cause as { readonly code?: string; readonly message?: string };
  if (code === "ERR_DLOPEN_DISABLED" || code === "ERR_ACCESS_DENIED") {
    return failure("addons-disabled", "Node was started with --no-addons, or with --permission and without --allow-addons");
  }
  const head = headOf(path);
  if (head === undefined) return explainMissing(path, target);
  const made = madeFor(head);
  if (made === undefined) return failure("binary-corrupt", "the file is no binary, or was cut: install the package again");
  if (!`${target}-`.startsWith(`${made}-`)) {
    return failure("wrong-architecture", `the file is for ${made}: install the package again, on the system that uses it`);
  }
  if (/GLIBC_\d/.test(message ?? "")) return failure("libc-too-old", "the C library is older than glibc 2.17");
  if (/libc\.musl|ld-musl|libc\.so\b|relocating/.test(message ?? "")) {
    return failure("wrong-libc", "the file is for another C library than this Node's");
  }
  return failure("binary-unusable", "the system refuses to load the file");
}

/** The binding of another release than the rest of the package. */
export const VERSION_MISMATCH = failure(
  "version-mismatch",
  "the package's parts are of different releases: install it again, and let no bundler mix them",
);

function failure(reason: ProcSafeErrorReason, advice: string): LoadFailure {
  return { reason, advice };
}

function explainMissing(path: string, target: string): LoadFailure {
  const others = binariesBeside(path).filter((name) => name !== target);
  if (basename(path, ".node") === target && others.length > 0) {
    return failure("unsupported-target", `there is no binary for ${target}, only for ${others.join(", ")}: build it from source`);
  }
  const bundled = "a bundler must copy it and name its place with setNativeBinding()";
  return failure("binary-missing", `${path} cannot be read: install the package again; ${bundled}`);
}

function binariesBeside(path: string): string[] {
  try {
    return readdirSync(dirname(path)).filter((name) => name.endsWith(".node")).map((name) => name.slice(0, -5));
  } catch {
    return []; // no such folder either
  }
}

const HEAD = 64;

/** The first bytes, or `undefined` for a file that cannot be read. */
function headOf(path: string): Buffer | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    const head = Buffer.alloc(HEAD);
    return head.subarray(0, readSync(file, head, 0, HEAD, 0));
  } catch {
    return Buffer.alloc(0); // a folder, for one
  } finally {
    closeSync(file);
  }
}

/** The platform and processor that a binary's header names: elf(5), mach-o/loader.h, the PE format. */
function madeFor(head: Buffer): string | undefined {
  if (head.length < HEAD) return undefined;
  const [elf, macho] = [head.readUInt32BE(0) === 0x7f454c46, head.readUInt32LE(0) === 0xfeedfacf];
  if (elf) return named("linux", { 62: "x64", 183: "arm64" }, head.readUInt16LE(18));
  if (macho) return named("darwin", { 0x01000007: "x64", 0x0100000c: "arm64" }, head.readUInt32LE(4));
  return head.readUInt16LE(0) === 0x5a4d ? "win32-x64" : undefined; // the only Windows that is built for
}

function named(platform: string, processors: Readonly<Record<number, string>>, number: number): string {
  return `${platform}-${processors[number] ?? `processor ${number}`}`;
}
