// What a 64-bit Mach-O file asks of the system it is loaded on: mach-o/loader.h and mach-o/nlist.h.

const MH_MAGIC_64 = 0xfeedfacf;
const LC_SYMTAB = 0x2;
const LC_LOAD_DYLIB = 0xc;
const LC_BUILD_VERSION = 0x32;
const N_STAB = 0xe0;
const N_TYPE = 0x0e;
const N_UNDF = 0x0;

/** The imported symbols, the libraries that are to have them, and the oldest macOS it runs on. */
export function readMachO(bytes) {
  if (bytes.length < 32 || bytes.readUInt32LE(0) !== MH_MAGIC_64) throw new Error("not a 64-bit Mach-O file");
  const facts = { imports: [], libraries: [], minimumSystem: undefined };
  let at = 32;
  for (let left = bytes.readUInt32LE(16); left > 0; left--) {
    const command = bytes.readUInt32LE(at);
    if (command === LC_SYMTAB) facts.imports = importsOf(bytes, at);
    if (command === LC_LOAD_DYLIB) facts.libraries.push(textAt(bytes, at + bytes.readUInt32LE(at + 8)));
    if (command === LC_BUILD_VERSION) facts.minimumSystem = versionOf(bytes.readUInt32LE(at + 12));
    at += bytes.readUInt32LE(at + 4);
  }
  return facts;
}

function importsOf(bytes, at) {
  const [symbols, count, strings] = [8, 12, 16].map((field) => bytes.readUInt32LE(at + field));
  const names = [];
  for (let index = 0; index < count; index++) {
    const entry = symbols + 16 * index;
    const type = bytes[entry + 4];
    const undefinedThere = (type & N_STAB) === 0 && (type & N_TYPE) === N_UNDF;
    if (undefinedThere) names.push(textAt(bytes, strings + bytes.readUInt32LE(entry)));
  }
  return names.sort();
}

function versionOf(packed) {
  return `${packed >>> 16}.${(packed >>> 8) & 0xff}`;
}

function textAt(bytes, start) {
  return bytes.toString("latin1", start, bytes.indexOf(0, start));
}
