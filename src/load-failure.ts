// Why the native binary cannot be used, and what a person can do. Looks at the file; loads nothing.

import { basename } from "node:path";
import { elfEnd, elfEndsInZeros, lookAt } from "./elf.js";
import type { Read } from "./elf.js";
import type { ProcSafeErrorReason } from "./errors.js";
import { TARGETS } from "./target.js";

/** A reason of the closed set, and a sentence for a person. */
export interface LoadFailure {
  readonly reason: ProcSafeErrorReason;
  readonly advice: string;
}

/**
 * Throws if the file at `path` ends before what its headers speak of, or in zeros. The dynamic linker of Linux does not
 * look, and a program that it maps so dies of SIGBUS or SIGSEGV, or hangs.
 */
export function refuseCut(path: string): void {
  const [size, end, inZeros] = lookAt(path, (read, length) => [length, elfEnd(read), elfEndsInZeros(read)] as const);
  if (size < end) throw new Error(`${path} has ${size} bytes of ${end}`);
  if (inZeros) throw new Error(`${path} ends in zeros`);
}

/** Explains why the file at `path`, which is to be the one for `target`, could not be loaded. */
export function explainLoadFailure(path: string, target: string, cause: unknown): LoadFailure {
  const { code, message } = cause as { readonly code?: string; readonly message?: string };
  if (code === "ERR_DLOPEN_DISABLED") {
    return failure("addons-disabled", "Node was started with --no-addons, or with --permission and without --allow-addons");
  }
  let made: string | undefined;
  try {
    made = lookAt(path, madeFor);
  } catch (error) {
    return explainUnread(path, target, (error as { readonly code?: string }).code);
  }
  if (made === undefined) return CORRUPT;
  if (!`${target}-`.startsWith(`${made}-`)) {
    return failure("wrong-architecture", `the file is for ${made}: install the package again, on the system that uses it`);
  }
  return explainRefusal(message ?? "");
}

/** What no name leads to, or what may not be read. The last is Node's own, under --permission. */
const OUT_OF_REACH = ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ERR_ACCESS_DENIED"];

function explainUnread(path: string, target: string, code: string | undefined): LoadFailure {
  if (code === "EISDIR") return CORRUPT;
  if (!OUT_OF_REACH.includes(code ?? "")) return failure("binary-unusable", "the file cannot be read now");
  if (basename(path, ".node") === target && !TARGETS.includes(target)) {
    const built = `there is no binary for ${target}, only for ${TARGETS.join(", ")}`;
    const unknown = /^linux-[^-]+$/.test(target) ? ": the program names the dynamic linker of neither glibc nor musl" : "";
    return failure("unsupported-target", `${built}${unknown}: build it from source`);
  }
  const bundled = "a bundler must copy it and name its place with setNativeBinding()";
  return failure("binary-missing", `${path} is not there or may not be read: install the package again; ${bundled}`);
}

/** What the dynamic linkers of the systems say. */
function explainRefusal(message: string): LoadFailure {
  if (/GLIBC_\d/.test(message)) return failure("libc-too-old", "the C library is older than glibc 2.17");
  if (/libc\.musl|ld-musl|libc\.so\b|relocating/.test(message)) {
    return failure("wrong-libc", "the file is for another C library than this Node's");
  }
  return failure("binary-unusable", "the system refuses to load the file");
}

const CORRUPT = failure("binary-corrupt", "the file is no binary, or was not written to its end: install the package again");

/** The binding of another release than the rest of the package. */
export const VERSION_MISMATCH = failure(
  "version-mismatch",
  "the package's parts are of different releases: start a program again that ran through an upgrade; else install it again, and let no bundler mix them",
);

/** Code that is in no file does not know what is beside it. */
export const NO_PLACE = failure("binary-missing", "a bundle must name the place of its binary with setNativeBinding()");

function failure(reason: ProcSafeErrorReason, advice: string): LoadFailure {
  return { reason, advice };
}

/**
 * The platform and processor that a binary's header names: elf(5), mach-o/loader.h, the PE format. `undefined` for a
 * file that is none or is cut.
 */
function madeFor(read: Read, size: number): string | undefined {
  const head = read(0, 64);
  if (head.length < 64 || size < elfEnd(read) || elfEndsInZeros(read)) return undefined;
  const [elf, macho] = [head.readUInt32BE(0) === 0x7f454c46, head.readUInt32LE(0) === 0xfeedfacf];
  if (elf) return named("linux", { 62: "x64", 183: "arm64" }, head.readUInt16LE(18));
  if (macho) return named("darwin", { 0x01000007: "x64", 0x0100000c: "arm64" }, head.readUInt32LE(4));
  if (head.readUInt16LE(0) !== 0x5a4d) return undefined;
  const signature = read(head.readUInt32LE(60), 6);
  if (signature.length < 6) return undefined;
  return named("win32", { 0x8664: "x64", 0xaa64: "arm64" }, signature.readUInt16LE(4));
}

function named(platform: string, processors: Readonly<Record<number, string>>, number: number): string {
  return `${platform}-${processors[number] ?? `processor ${number}`}`;
}
