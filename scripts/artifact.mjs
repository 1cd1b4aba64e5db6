// What a binary may ask of the system that it is for, what it may give it, and how large it may be.

import { readFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { readElf } from "./elf.mjs";
import { readMachO } from "./macho.mjs";
import { readPe } from "./pe.mjs";
import { ROOT } from "./run.mjs";
import { CACHE, TARGETS } from "./targets.mjs";

const MOST_BYTES = 500_000;

/** All that Node looks for. */
const EXPORT = "napi_register_module_v1";
/** What zig's linker adds for macOS: names of the image itself, which no other image can bind to by accident. */
const ADDED = ["___dso_handle", "__mh_dylib_header"];

const LIBRARIES = {
  glibc: ["libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"],
  musl: ["libc.so"],
  macOS: ["/usr/lib/libSystem.B.dylib"],
};

/** Where something was built. A crate is named by its own folder, the standard library `/rustc/…`. */
const PLACES = [homedir(), join(tmpdir(), "/"), ROOT, CACHE, ".cargo", "registry/src", "rustlib"];

/** Why a binary is not fit to be shipped as this target's: nothing, if it is. */
export function complaintsAbout(name, bytes) {
  const { oldest } = TARGETS[name];
  const facts = read(name, bytes);
  const processor = name.split("-")[1];
  const text = bytes.toString("latin1");
  const exported = oldest.macOS === undefined ? facts.exports : exportsOfDarwin(facts.exports);
  return [
    bytes.length > MOST_BYTES && `is ${bytes.length} bytes large, more than ${MOST_BYTES}`,
    facts.machine !== processor && `is for ${facts.machine}`,
    !facts.stripped && "is not stripped",
    exported.join() !== EXPORT && `exports ${exported.join(", ")}, not ${EXPORT} alone`,
    ...PLACES.filter((place) => text.includes(place)).map((place) => `names ${place}, where it was built`),
    ...strangeLibraries(oldest, facts.libraries ?? []).map((library) => `needs ${library}`),
    ...strangeImports(oldest, facts.imports ?? []).map((symbol) => `imports ${symbol}`),
    ...(facts.versions ?? []).filter((version) => isTooNew(version, oldest)).map((version) => `needs ${version}`),
    facts.minimumSystem !== oldest.macOS && `is for macOS ${facts.minimumSystem}, not ${oldest.macOS}`,
  ].filter((complaint) => complaint !== false);
}

function read(name, bytes) {
  if (name.startsWith("linux-")) return readElf(bytes);
  return name.startsWith("darwin-") ? readMachO(bytes) : readPe(bytes);
}

/** There a C name has an underscore before it. */
function exportsOfDarwin(exported) {
  return exported.filter((symbol) => !ADDED.includes(symbol)).map((symbol) => symbol.replace(/^_/, ""));
}

function strangeLibraries(oldest, libraries) {
  const known = Object.keys(oldest).flatMap((system) => LIBRARIES[system] ?? []);
  return libraries.filter((library) => !known.includes(library));
}

/** It must be on every macOS and every Windows that the binary is for; on Linux the versions of symbols say so. */
function strangeImports(oldest, imports) {
  const list = oldest.macOS === undefined ? "windows-imports.txt" : "darwin-imports.txt";
  const known = new Set(readFileSync(join(ROOT, "scripts", list), "utf8").split("\n"));
  return imports.filter((symbol) => !known.has(symbol) && !(oldest.macOS !== undefined && /^_napi_\w+$/.test(symbol)));
}

/** musl's symbols have no versions. */
function isTooNew(version, { glibc }) {
  const [, major, minor] = /^GLIBC_(\d+)\.(\d+)/.exec(version) ?? [];
  if (glibc === undefined || major === undefined) return true;
  const [most, least] = glibc.split(".").map(Number);
  return Number(major) > most || (Number(major) === most && Number(minor) > least);
}
