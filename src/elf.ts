// The headers of 64-bit little-endian ELF files (elf(5)), as far as loading asks for them.

import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** Bytes of a file; fewer where it ends. */
export type Read = (offset: number, length: number) => Buffer;

interface Headers {
  readonly offset: number;
  readonly size: number;
  readonly count: number;
}

/** Opens a file for one look. */
export function lookAt<T>(path: string, look: (read: Read, size: number) => T): T {
  const file = openSync(path, "r");
  try {
    const read: Read = (offset, length) => {
      const buffer = Buffer.alloc(length);
      return buffer.subarray(0, readSync(file, buffer, 0, length, offset));
    };
    return look(read, fstatSync(file).size);
  } finally {
    closeSync(file);
  }
}

/** The path in a program's PT_INTERP header; `""` if it has none. */
export function elfInterpreter(read: Read): string {
  const PT_INTERP = 3;
  const found = programHeaders(read).find((entry) => entry.readUInt32LE(0) === PT_INTERP);
  if (found === undefined) return "";
  const length = Math.min(fileSize(found), 4096);
  return read(fileOffset(found), length).toString("latin1").replace(/\0.*$/s, "");
}

/** Where the last byte must be that the headers speak of; 0 for any other file. */
export function elfEnd(read: Read): number {
  const PT_LOAD = 1;
  const header = elfHeader(read);
  if (header === undefined) return 0;
  const loaded = programHeaders(read).filter((entry) => entry.readUInt32LE(0) === PT_LOAD);
  const tables = [tableAt(header, 32, 54), tableAt(header, 40, 58)].map(({ offset, size, count }) => offset + size * count);
  return Math.max(...tables, ...loaded.map((entry) => fileOffset(entry) + fileSize(entry)));
}

/**
 * Whether the table of sections, which linkers write last, ends in zeros: so it is where a file got its length before
 * its contents, and those did not come.
 */
export function elfEndsInZeros(read: Read): boolean {
  const header = elfHeader(read);
  if (header === undefined) return false;
  const { offset, size, count } = tableAt(header, 40, 58);
  return count > 1 && read(offset + size * (count - 1), size).every((byte) => byte === 0); // the first is always zeros
}

function elfHeader(read: Read): Buffer | undefined {
  const header = read(0, 64);
  if (header.length < 64 || header.readUInt32BE(0) !== 0x7f454c46) return undefined;
  return header[4] === 2 && header[5] === 1 ? header : undefined;
}

/** Those that are whole. */
function programHeaders(read: Read): Buffer[] {
  const header = elfHeader(read);
  if (header === undefined) return [];
  const { offset, size, count } = tableAt(header, 32, 54);
  const entries = Array.from({ length: count }, (_, index) => read(offset + index * size, size));
  return entries.filter((entry) => entry.length >= 56);
}

/** A table of headers, by where the file's header has its offset, and the size and count of its entries. */
function tableAt(header: Buffer, offset: number, size: number): Headers {
  return {
    offset: Number(header.readBigUInt64LE(offset)),
    size: header.readUInt16LE(size),
    count: header.readUInt16LE(size + 2),
  };
}

function fileOffset(entry: Buffer): number {
  return Number(entry.readBigUInt64LE(8));
}

function fileSize(entry: Buffer): number {
  return Number(entry.readBigUInt64LE(32));
}
