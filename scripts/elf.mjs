// What a 64-bit little-endian ELF file for Linux asks of the system it is loaded on, and gives it: elf(5).

const MAGIC = 0x7f454c46;
const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const SHT_SYMTAB = 2;
const SHT_DYNSYM = 11;
const SHN_UNDEF = 0;
const DT_NEEDED = 1;
const DT_STRTAB = 5;
const DT_VERNEED = 0x6ffffffe;
const DT_VERNEEDNUM = 0x6fffffff;
const MACHINES = { 62: "x64", 183: "arm64" };

/** The processor, the libraries it needs, the versions of their symbols, what it exports, and whether it is stripped. */
export function readElf(bytes) {
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== MAGIC || bytes[4] !== 2 || bytes[5] !== 1) {
    throw new Error("not a 64-bit little-endian ELF file");
  }
  const segments = segmentsOf(bytes);
  const dynamic = dynamicOf(bytes, segments);
  const strings = offsetOf(segments, valueOf(dynamic, DT_STRTAB));
  const name = (at) => textAt(bytes, strings + at);
  const sections = sectionsOf(bytes);
  return {
    machine: MACHINES[bytes.readUInt16LE(18)],
    libraries: dynamic.filter(({ tag }) => tag === DT_NEEDED).map(({ value }) => name(value)),
    versions: [...new Set(versionsOf(bytes, segments, dynamic).map(name))],
    exports: sections.filter(({ type }) => type === SHT_DYNSYM).flatMap((section) => exportsOf(bytes, section)).map(name),
    stripped: !sections.some(({ type }) => type === SHT_SYMTAB),
  };
}

/** The program headers; `place` is where each stands in the file. */
export function segmentsOf(bytes) {
  const [start, size, count] = [number(bytes, 32), bytes.readUInt16LE(54), bytes.readUInt16LE(56)];
  return Array.from({ length: count }, (_, index) => {
    const place = start + index * size;
    const [offset, address, stored, inMemory] = [8, 16, 32, 40].map((field) => number(bytes, place + field));
    return { place, type: bytes.readUInt32LE(place), offset, address, stored, size: inMemory };
  });
}

/** The dynamic section, up to its end; `place` is where each entry stands in the file. */
export function dynamicOf(bytes, segments) {
  const { offset, stored } = segments.find(({ type }) => type === PT_DYNAMIC) ?? { offset: 0, stored: 0 };
  const entries = Array.from({ length: stored / 16 }, (_, index) => {
    const place = offset + 16 * index;
    return { place, tag: number(bytes, place), value: number(bytes, place + 8) };
  });
  const end = entries.findIndex(({ tag }) => tag === 0);
  return end === -1 ? entries : entries.slice(0, end);
}

/** 0 if there is no such entry. */
export function valueOf(dynamic, wanted) {
  return dynamic.find(({ tag }) => tag === wanted)?.value ?? 0;
}

export function loadedOf(segments) {
  return segments.filter(({ type }) => type === PT_LOAD);
}

/** Where in the file an address is stored. */
export function offsetOf(segments, address) {
  const segment = loadedOf(segments).find((some) => address >= some.address && address < some.address + some.stored);
  if (segment === undefined) throw new Error(`no segment holds 0x${address.toString(16)}`);
  return address - segment.address + segment.offset;
}

/** The places of the names of the versions: one list a library, each entry with the distance to the next. */
function versionsOf(bytes, segments, dynamic) {
  const found = [];
  let library = valueOf(dynamic, DT_VERNEED) && offsetOf(segments, valueOf(dynamic, DT_VERNEED));
  for (let left = valueOf(dynamic, DT_VERNEEDNUM); left > 0; left--) {
    let version = library + bytes.readUInt32LE(library + 8);
    for (let more = bytes.readUInt16LE(library + 2); more > 0; more--) {
      found.push(bytes.readUInt32LE(version + 8));
      version += bytes.readUInt32LE(version + 12);
    }
    library += bytes.readUInt32LE(library + 12);
  }
  return found;
}

function sectionsOf(bytes) {
  const [start, size, count] = [number(bytes, 40), bytes.readUInt16LE(58), bytes.readUInt16LE(60)];
  return Array.from({ length: count }, (_, index) => {
    const place = start + index * size;
    return { type: bytes.readUInt32LE(place + 4), offset: number(bytes, place + 24), size: number(bytes, place + 32) };
  });
}

/** The places of the names of the defined symbols. Local ones are in no dynamic table but the first, which is nothing. */
function exportsOf(bytes, { offset, size }) {
  const names = [];
  for (let entry = offset + 24; entry < offset + size; entry += 24) {
    if (bytes.readUInt16LE(entry + 6) !== SHN_UNDEF) names.push(bytes.readUInt32LE(entry));
  }
  return names;
}

function textAt(bytes, start) {
  return bytes.toString("latin1", start, bytes.indexOf(0, start));
}

function number(bytes, at) {
  return Number(bytes.readBigUInt64LE(at));
}
