// Rewrites a 64-bit ELF library for a loader that does not know packed relative relocations (DT_RELR, elf(5)):
// musl before 1.2.4 skips them. They are written out as plain ones, in a segment of their own at the end.

import { dynamicOf, loadedOf, offsetOf, segmentsOf, valueOf } from "./elf.mjs";

const PT_LOAD = 1;
const PT_NOTE = 4;
const PT_GNU_STACK = 0x6474e551;
const DT_RELA = 7;
const DT_RELASZ = 8;
const DT_DEBUG = 21; // of a program; no loader looks at that of a library
const PACKED_TAGS = [35, 36, 37]; // DT_RELRSZ, DT_RELR, DT_RELRENT
const PF_R = 4;
const PAGE = 0x10000; // the largest of both machines
const RELATIVE = { 62: 8n, 183: 1027n }; // R_X86_64_RELATIVE, R_AARCH64_RELATIVE

/** The library without packed relocations; the same bytes if it has none. */
export function unpackRelocations(library) {
  const segments = segmentsOf(library);
  const dynamic = dynamicOf(library, segments);
  const value = (tag) => valueOf(dynamic, tag);
  const [packedSize, packed] = PACKED_TAGS.map(value);
  if (packed === 0) return library;
  const at = (address) => offsetOf(segments, address);
  const old = library.subarray(at(value(DT_RELA)), at(value(DT_RELA)) + value(DT_RELASZ));
  const type = RELATIVE[library.readUInt16LE(18)];
  const added = addressesOf(library, at(packed), packedSize).map((address) => {
    const entry = Buffer.alloc(24);
    entry.writeBigUInt64LE(BigInt(address), 0);
    entry.writeBigUInt64LE(type, 8);
    library.copy(entry, 16, at(address), at(address) + 8);
    return entry;
  });
  const table = Buffer.concat([...added, old]);
  const offset = roundUp(library.length);
  const address = roundUp(Math.max(...loadedOf(segments).map((segment) => segment.address + segment.size)));
  const result = Buffer.concat([library, Buffer.alloc(offset - library.length), table]);
  writeSegment(result, segments, { offset, address, size: table.length });
  for (const { tag, place } of dynamic) {
    if (PACKED_TAGS.includes(tag)) result.writeBigUInt64LE(BigInt(DT_DEBUG), place);
    if (tag === DT_RELA) result.writeBigUInt64LE(BigInt(address), place + 8);
    if (tag === DT_RELASZ) result.writeBigUInt64LE(BigInt(table.length), place + 8);
  }
  return result;
}

function roundUp(size) {
  return Math.ceil(size / PAGE) * PAGE;
}

/** An even word is an address; an odd one says which of the next 63 words are relocated too. */
function addressesOf(bytes, start, size) {
  const addresses = [];
  let next = 0;
  for (let at = start; at < start + size; at += 8) {
    const word = bytes.readBigUInt64LE(at);
    if ((word & 1n) === 0n) {
      addresses.push(Number(word));
      next = Number(word) + 8;
      continue;
    }
    for (let bit = 1n; bit < 64n; bit++) if ((word >> bit) & 1n) addresses.push(next + 8 * (Number(bit) - 1));
    next += 8 * 63;
  }
  return addresses;
}

/** In the place of a note, or of the remark that the stack is not executable. */
function writeSegment(bytes, segments, { offset, address, size }) {
  const spare = segments.find(({ type }) => type === PT_NOTE) ?? segments.find(({ type }) => type === PT_GNU_STACK);
  if (spare === undefined) throw new Error("no room for another segment");
  bytes.writeUInt32LE(PT_LOAD, spare.place);
  bytes.writeUInt32LE(PF_R, spare.place + 4);
  [offset, address, address, size, size, PAGE].forEach((value, index) => {
    bytes.writeBigUInt64LE(BigInt(value), spare.place + 8 + 8 * index);
  });
}
