// The licences of everything that is compiled into the binaries: `node scripts/third-party.mjs` writes
// THIRD-PARTY-LICENSES; `pnpm pack:check` compares.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fail, ROOT, run } from "./run.mjs";

export const THIRD_PARTY = join(ROOT, "THIRD-PARTY-LICENSES");

const INTRODUCTION = `The binaries under prebuilds/ are compiled from proc-safe, which has the licence in LICENSE, and from what
they use of the following. Where there was a choice of licences, MIT was chosen.

They hold no other C library; what a linker adds of a compiler's own run time comes under the exceptions that
GCC's and LLVM's licences make for that.`;

/** What the compiler brings, which is not in cargo's metadata: as the crates' own files have it. */
const STANDARD_LIBRARY = [
  ["the Rust standard library", "Copyright (c) The Rust Project Contributors"],
  ["addr2line, in it", "Copyright (c) 2016-2018 The gimli Developers"],
  ["adler2, in it", "by Jonas Schievink, oyvindln"],
  ["cfg-if, in it", "Copyright (c) 2014 Alex Crichton"],
  ["compiler_builtins, in it", "by Alex Crichton, Amanieu d'Antras, Jorge Aparicio, Trevor Gross"],
  ["musl's mathematics, in compiler_builtins", "Copyright (c) 2005-2020 Rich Felker, et al."],
  ["gimli, in it", "Copyright (c) 2015 The Rust Project Developers"],
  ["hashbrown, in it", "Copyright (c) 2016 Amanieu d'Antras"],
  ["libc, in it", "Copyright (c) The Rust Project Developers"],
  ["memchr, in it", "Copyright (c) 2015 Andrew Gallant"],
  ["miniz_oxide, in it", "Copyright 2013-2014 RAD Game Tools and Valve Software, 2010-2014 Rich Geldreich and Tenacious Software LLC"],
  ["object, in it", "Copyright (c) 2015 The Gimli Developers"],
  ["rustc-demangle, in it", "Copyright (c) 2014 Alex Crichton"],
];

/** The whole file. */
export function thirdPartyText() {
  const groups = new Map();
  for (const { name, terms, notices } of linkedCrates().map(licenceOf)) {
    const key = terms.replace(/\W+/g, " ").trim();
    const group = groups.get(key) ?? { terms, names: [] };
    groups.set(key, { ...group, names: [...group.names, ...titled(name, notices)] });
  }
  const mit = [...groups.values()].sort((a, b) => b.names.length - a.names.length)[0];
  mit.names.push("", ...STANDARD_LIBRARY.flatMap(([name, notice]) => titled(name, [notice])));
  const rule = "=".repeat(80);
  const parts = [...groups.values()].map(({ names, terms }) => `${names.join("\n")}\n\n${terms}`);
  return `${[INTRODUCTION, ...parts].join(`\n\n${rule}\n\n`)}\n`;
}

function titled(name, notices) {
  return [name, ...notices.map((notice) => `    ${notice}`)];
}

/** Every crate whose code can be in a binary of any target: no build scripts, no macros' implementations. */
function linkedCrates() {
  const { stdout } = run("cargo", ["metadata", "--format-version", "1", "--locked"], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  const { packages, resolve } = JSON.parse(stdout);
  const byId = new Map(packages.map((entry) => [entry.id, entry]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const reached = new Set([packages.find(({ name }) => name === "proc-safe-addon").id]);
  for (const id of reached) {
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
      const isMacro = byId.get(pkg).targets.some(({ kind }) => kind.includes("proc-macro"));
      if (kinds.some(({ kind }) => kind === null) && !isMacro) reached.add(pkg);
    }
  }
  const crates = [...reached].map((id) => byId.get(id)).filter(({ source }) => source !== null);
  return crates.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Its name, who wrote it, and under which terms. */
function licenceOf({ name, version, license, authors, manifest_path: manifest }) {
  const chosen = license.split(/ OR |\//).find((choice) => ["MIT", "ISC"].includes(choice));
  if (chosen === undefined) fail(`${name} ${version} has the licence ${license}: may it be shipped?`);
  const directory = dirname(manifest);
  const files = readdirSync(directory);
  const file = files.find((entry) => /^license-mit/i.test(entry)) ?? files.find((entry) => /^license(\.|$)/i.test(entry));
  if (file === undefined && chosen !== "MIT") fail(`${name} ${version} has no licence file`);
  const text = file === undefined ? ownMitTerms() : readFileSync(join(directory, file), "utf8");
  const lines = text.split("\n").map((line) => line.trim());
  const notices = lines.filter(isNotice);
  const people = authors.map((author) => author.replace(/ <.*>$/, ""));
  if (notices.length === 0 && people.length > 0) notices.push(`by ${people.join(", ")}`);
  const terms = lines.filter((line) => !isNotice(line) && !/^(the )?mit license( \(mit\))?$|^isc license$/i.test(line));
  return { name: `${name} ${version}`, notices, terms: terms.join("\n").trim() };
}

function isNotice(line) {
  return /^(portions )?copyright\b/i.test(line);
}

/** The words of the MIT licence, from our own. */
function ownMitTerms() {
  return readFileSync(join(ROOT, "LICENSE"), "utf8").replace(/^[\s\S]*?(?=Permission is hereby)/, "").trim();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(THIRD_PARTY, thirdPartyText());
