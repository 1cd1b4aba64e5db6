// What a 64-bit Mach-O file asks of the system it is loaded on, and gives it: mach-o/loader.h and mach-o/nlist.h.

const MH_MAGIC_64 = 0xfeedfacf;
const LC_SYMTAB = 0x2;
const LC_LOAD_DYLIB = 0xc;
const LC_BUILD_VERSION = 0x32;
const N_STAB = 0xe0;
const N_TYPE = 0x0e;
const N_PEXT = 0x10;
const N_EXT = 0x01;
const N_UNDF = 0x0;
const MACHINES = { 0x01000007: "x64", 0x0100000c: "arm64" };

/**
 * The processor, the imported symbols, the libraries that are to have them, what it exports, whether it is stripped,
 * and the oldest macOS it runs on.
 */
export function readMachO(bytes) {
  if (bytes.length < 32 || bytes.readUInt32LE(0) !== MH_MAGIC_64) throw new Error("not a 64-bit Mach-O file");
  const facts = { machine: MACHINES[bytes.readUInt32LE(4)], libraries: [], minimumSystem: undefined };
  let symbols = [];
  let at = 32;
  for (let left = bytes.readUInt32LE(16); left > 0; left--) {
    const command = bytes.readUInt32LE(at);
    if (command === LC_SYMTAB) symbols = symbolsOf(bytes, at);
    if (command === LC_LOAD_DYLIB) facts.libraries.push(textAt(bytes, at + bytes.readUInt32LE(at + 8)));
    if (command === LC_BUILD_VERSION) facts.minimumSystem = versionOf(bytes.readUInt32LE(at + 12));
    at += bytes.readUInt32LE(at + 4);
  }
  const named = (wanted) => symbols.filter(({ type }) => wanted(type)).map(({ name }) => name).sort();
  return {
    ...facts,
    imports: named(isUndefined),
    exports: named((type) => !isUndefined(type) && (type & N_EXT) !== 0 && (type & N_PEXT) === 0),
    stripped: symbols.every(({ type }) => isUndefined(type) || (type & (N_EXT | N_PEXT)) !== 0),
  };
}

function symbolsOf(bytes, at) {
  const [symbols, count, strings] = [8, 12, 16].map((field) => bytes.readUInt32LE(at + field));
  return Array.from({ length: count }, (_, index) => {
    const entry = symbols + 16 * index;
    return { type: bytes[entry + 4], name: textAt(bytes, strings + bytes.readUInt32LE(entry)) };
  });
}

function isUndefined(type) {
  return (type & N_STAB) === 0 && (type & N_TYPE) === N_UNDF;
}

function versionOf(packed) {
  return `${packed >>> 16}.${(packed >>> 8) & 0xff}`;
}

function textAt(bytes, start) {
  return bytes.toString("latin1", start, bytes.indexOf(0, start));
}
