// What a 64-bit Windows program file asks of the system it is loaded on: Microsoft's "PE Format".

const PE32_PLUS = 0x20b;
const IMPORT_DIRECTORY = 1;
const DESCRIPTOR = 20;
const BY_ORDINAL = 1n << 63n;

/** The imported functions, as `library function`, both as they are looked up: libraries in lower case. */
export function readImports(bytes) {
  const header = bytes.length < 64 ? 0 : bytes.readUInt32LE(60);
  if (header === 0 || bytes.toString("latin1", header, header + 4) !== "PE\0\0") throw new Error("not a PE file");
  const optional = header + 24;
  if (bytes.readUInt16LE(optional) !== PE32_PLUS) throw new Error("not a 64-bit PE file");
  const sections = sectionsOf(bytes, optional + bytes.readUInt16LE(header + 20), bytes.readUInt16LE(header + 6));
  const at = (address) => offsetOf(sections, address);
  const imports = [];
  let descriptor = at(bytes.readUInt32LE(optional + 112 + 8 * IMPORT_DIRECTORY));
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
