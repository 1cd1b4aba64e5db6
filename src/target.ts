// Which prebuilt binary belongs to the running Node.

import { closeSync, openSync, readSync } from "node:fs";

/** The name of this platform's binary, such as `linux-x64-gnu` or `darwin-arm64`. */
export function currentTarget(): string {
  const base = `${process.platform}-${process.arch}`;
  return process.platform === "linux" ? `${base}-${usesMusl() ? "musl" : "gnu"}` : base;
}

/**
 * The C library, by the interpreter that the running program names. (`process.report` says it too,
 * but can take seconds on a busy host.)
 */
function usesMusl(): boolean {
  let file: number;
  try {
    file = openSync("/proc/self/exe", "r");
  } catch {
    file = openSync(process.execPath, "r");
  }
  try {
    return elfInterpreter((offset, length) => readAt(file, offset, length)).includes("ld-musl-");
  } finally {
    closeSync(file);
  }
}

function readAt(file: number, offset: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(file, buffer, 0, length, offset));
}

/** The path in a 64-bit little-endian program's PT_INTERP header (elf(5)); `""` if it has none. */
export function elfInterpreter(read: (offset: number, length: number) => Buffer): string {
  const PT_INTERP = 3;
  const header = read(0, 64);
  if (header.length < 64 || header.readUInt32BE(0) !== 0x7f454c46) return "";
  if (header[4] !== 2 || header[5] !== 1) return "";
  const offset = Number(header.readBigUInt64LE(32));
  const size = header.readUInt16LE(54);
  const count = header.readUInt16LE(56);
  for (let index = 0; index < count; index++) {
    const entry = read(offset + index * size, size);
    if (entry.length < 40 || entry.readUInt32LE(0) !== PT_INTERP) continue;
    const length = Math.min(Number(entry.readBigUInt64LE(32)), 4096);
    return read(Number(entry.readBigUInt64LE(8)), length).toString("latin1").replace(/\0.*$/s, "");
  }
  return "";
}
