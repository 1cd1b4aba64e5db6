// What a 64-bit Windows program file asks of the system it is loaded on, and gives it: Microsoft's "PE Format".

const PE32_PLUS = 0x20b;
const EXPORT_DIRECTORY = 0;
const IMPORT_DIRECTORY = 1;
const DESCRIPTOR = 20;
const BY_ORDINAL = 1n << 63n;
const MACHINES = { 0x8664: "x64", 0xaa64: "arm64" };

/**
 * The processor, what it exports, whether it is stripped, and the imported functions as `library function`, both as
 * they are looked up: libraries in lower case.
 */
export function readPe(bytes) {
  const header = bytes.length < 64 ? 0 : bytes.readUInt32LE(60);
  if (header === 0 || bytes.toString("latin1", header, header + 4) !== "PE\0\0") throw new Error("not a PE file");
  const optional = header + 24;
  if (bytes.readUInt16LE(optional) !== PE32_PLUS) throw new Error("not a 64-bit PE file");
  const sections = sectionsOf(bytes, optional + bytes.readUInt16LE(header + 20), bytes.readUInt16LE(header + 6));
  const at = (address) => offsetOf(sections, address);
  const directory = (index) => bytes.readUInt32LE(optional + 112 + 8 * index);
  return {
    machine: MACHINES[bytes.readUInt16LE(header + 4)],
    imports: importsOf(bytes, at, directory(IMPORT_DIRECTORY)),
    exports: exportsOf(bytes, at, directory(EXPORT_DIRECTORY)),
    stripped: bytes.readUInt32LE(header + 12) === 0,
  };
}

function importsOf(bytes, at, directory) {
  const imports = [];
  let descriptor = at(directory);
  for (; bytes.readUInt32LE(descriptor + 12) !== 0; descriptor += DESCRIPTOR) {
    const library = textAt(bytes, at(bytes.readUInt32LE(descriptor + 12))).toLowerCase();
    for (let entry = at(bytes.readUInt32LE(descriptor)); bytes.readBigUInt64LE(entry) !== 0n; entry += 8) {
      const value = bytes.readBigUInt64LE(entry);
      if ((value & BY_ORDINAL) !== 0n) imports.push(`${library} #${value & 0xffffn}`);
      else imports.push(`${library} ${textAt(bytes, at(Number(value)) + 2)}`);
    }
  }
  return [...new Set(imports)].sort();
}

function exportsOf(bytes, at, directory) {
  if (directory === 0) return [];
  const table = at(directory);
  const names = at(bytes.readUInt32LE(table + 32));
  return Array.from({ length: bytes.readUInt32LE(table + 24) }, (_, index) => textAt(bytes, at(bytes.readUInt32LE(names + 4 * index))));
}

function sectionsOf(bytes, start, count) {
  return Array.from({ length: count }, (_, index) => {
    const [size, address, stored, offset] = [8, 12, 16, 20].map((field) => bytes.readUInt32LE(start + 40 * index + field));
    return { address, end: address + Math.max(size, stored), offset };
  });
}

function offsetOf(sections, address) {
  const section = sections.find(({ address: begin, end }) => address >= begin && address < end);
  if (section === undefined) throw new Error(`no section holds 0x${address.toString(16)}`);
  return address - section.address + section.offset;
}

function textAt(bytes, start) {
  return bytes.toString("latin1", start, bytes.indexOf(0, start));
}
