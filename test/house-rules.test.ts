// The rules of the house, read off the sources (AGENTS.md says why each exists).

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { complaintsAbout } from "../scripts/release-notes.mjs";
import { ROOT } from "./support/paths.ts";

const FILES = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: ROOT,
  encoding: "utf8",
}).trim().split("\n");

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const among = (pattern: RegExp): string[] => FILES.filter((file) => pattern.test(file));
/** Rust without its comments. */
const code = (file: string): string => read(file).replace(/\/\/.*$/gm, "");

const RUST = among(/^native\/.*\.rs$/);
const TYPESCRIPT = among(/^src\/.*\.ts$/);

test("there are sources to read", () => {
  expect(RUST.length).toBeGreaterThan(10);
  expect(TYPESCRIPT.length).toBeGreaterThan(8);
});

test("unsafe Rust stands in sys/ and once in the addon's glue, and states its reason", () => {
  for (const file of RUST) {
    const used = [...code(file).matchAll(/\bunsafe (\{|extern "C" \{)/g)].length;
    const words = [...code(file).matchAll(/\bunsafe\b/g)].length;
    const reasons = [...read(file).matchAll(/\/\/ SAFETY: /g)].length;
    expect([reasons, words], file).toEqual([used, used]);
    if (!file.startsWith("native/core/src/sys/")) {
      expect(used, file).toBe(file === "native/addon/src/lib.rs" ? 1 : 0);
    }
  }
});

test("only sys/ knows for which system it was compiled", () => {
  for (const file of RUST.filter((name) => !name.startsWith("native/core/src/sys/"))) {
    expect(code(file).match(/target_os|cfg\(unix\)|cfg\(windows\)|\blibc::/)?.[0], file).toBeUndefined();
  }
});

test("only the addon knows Node-API", () => {
  for (const file of RUST.filter((name) => !name.startsWith("native/addon/"))) {
    expect(code(file).match(/\bnapi\b/)?.[0], file).toBeUndefined();
  }
});

test("every export of the addon is guarded against panics, or cannot panic", () => {
  const source = read("native/addon/src/lib.rs");
  for (const [, attribute, name] of source.matchAll(/#\[napi(\([^)]*\))?\]\s*pub fn (\w+)/g)) {
    if (name === "describe_binding") continue; // three constants
    expect(attribute, name).toContain("catch_unwind");
  }
  expect([...source.matchAll(/guarded\(/g)].length).toBe([...source.matchAll(/#\[napi\(catch_unwind\)\]/g)].length);
});

test("one file loads the binding, and one asks for the platform", () => {
  const uses = (pattern: RegExp): string[] => TYPESCRIPT.filter((file) => pattern.test(read(file)));
  expect(uses(/createRequire|process\.dlopen|\.node`/)).toEqual(["src/native.ts"]);
  expect(uses(/process\.(platform|arch)/)).toEqual(["src/target.ts"]);
  expect(uses(/child_process|exec\(|spawn/)).toEqual([]);
  expect(uses(/console\./)).toEqual([]);
});

test("imports point down", () => {
  const levels = [
    ["errors", "escape", "elf", "types", "table", "births"],
    ["target"],
    ["load-failure"],
    ["arguments", "native", "ancestry"],
    ["decode", "native-status", "tree"],
    ["inspect", "identity"],
    ["index", "cli"],
  ];
  const levelOf = (name: string): number => levels.findIndex((level) => level.includes(name));
  for (const file of TYPESCRIPT) {
    const name = file.replace(/^src\/|\.ts$/g, "");
    expect(levelOf(name), `${file} has a level`).toBeGreaterThanOrEqual(0);
    for (const [, from] of read(file).matchAll(/^(?:import|export) (?!type ).*from "\.\/([\w-]+)\.js"/gm)) {
      expect(levelOf(from ?? ""), `${file} → ${from}`).toBeLessThan(levelOf(name) + (from === "escape" || from === "errors" ? 1 : 0));
    }
  }
});

test("trees load no binding", () => {
  const reached = new Set(["tree"]);
  for (const name of reached) {
    for (const [, from = ""] of read(`src/${name}.ts`).matchAll(/from "\.\/([\w-]+)\.js"/g)) reached.add(from);
  }
  expect([...reached].sort()).toEqual(["arguments", "births", "errors", "escape", "tree", "types"]);
});

test("each source opens by saying what it owns", () => {
  for (const file of RUST) expect(read(file), file).toMatch(/^\/\/! /);
  for (const file of among(/^(src|test|bench|rig|examples)\/.*\.m?(ts|js)$|^scripts\/.*\.mjs$/)) {
    expect(read(file).replace(/^#!.*\n/, ""), file).toMatch(/^\/\/ /);
  }
  for (const file of among(/^(test\/(fixtures|windows)|rig)\/.*\.[ch]$/)) expect(read(file), file).toMatch(/^\/\* /);
});

test("the columns of a packed row are the same on both sides", () => {
  const bits = (text: string): Record<string, string> =>
    Object.fromEntries(
      [...text.matchAll(/const (EXITING|PARENT|GROUP|SESSION|UID|NAME|IDENTITY|EXITED|SINCE_BOOT|UNIQUE_ID|EXECUTABLE|WORKING_DIRECTORY)(?:: u32)? = (1(?: << \d+)?);/g)]
        .map(([, name, value]) => [name, value]),
    ) as Record<string, string>;
  const rust = bits(read("native/addon/src/pack.rs"));
  expect(Object.keys(rust)).toHaveLength(12);
  expect(bits(read("src/decode.ts"))).toEqual(rust);
  const contract = (text: string): string | undefined => /const CONTRACT(?:: u32)? = (\d+);/.exec(text)?.[1];
  expect(contract(read("src/native.ts"))).toBe(contract(read("native/addon/src/lib.rs")));
});

test("codes and reasons are the same closed sets on both sides and in the docs", () => {
  const rust = read("native/core/src/error.rs");
  const texts = [...rust.matchAll(/=> "([a-z-]+)",/g)].map(([, text]) => text ?? "");
  const errors = read("src/errors.ts");
  const union = (type: string): string[] =>
    [...(new RegExp(`type ${type} =([^;]+);`).exec(errors)?.[1] ?? "").matchAll(/"([a-z-]+)"/g)].map(([, text]) => text ?? "");
  const codes = union("ProcSafeErrorCode");
  const reasons = union("ProcSafeErrorReason");
  // Those of helper-unavailable are the loader's, which is no Rust.
  const loader = [
    "switched-off",
    ...[...read("src/load-failure.ts").matchAll(/failure\(\s*"([a-z-]+)"/g)].map(([, reason]) => reason ?? ""),
  ];
  expect(reasons).toEqual(expect.arrayContaining(loader));
  expect([...texts].sort()).toEqual(
    [...codes.filter((code) => !["invalid-argument", "helper-unavailable"].includes(code)), ...reasons]
      .filter((name) => !loader.includes(name))
      .sort(),
  );
  const docs = read("docs/errors.md");
  for (const name of [...codes, ...reasons]) expect(docs, name).toContain(`\`${name}\``);
});

test("one version everywhere", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  const complaints = complaintsAbout(ROOT, `v${version}`).filter((text) => !text.startsWith("CHANGELOG.md ")); // unreleased yet
  expect(complaints).toEqual([]);
});

test("no machine's paths, no registry's addresses", () => {
  for (const file of among(/\.(md|json|yaml|yml|toml|lock|mjs|ts|rs|c|h)$|^\.ci\/run$|^dev$/)) {
    expect(read(file).match(/(?<![\w.$}*])\/(?:home|Users|root|work)(?:\/|\b(?=["\s:]))/)?.[0], file).toBeUndefined();
  }
  for (const file of among(/pnpm-lock\.yaml$/)) expect(read(file), file).not.toContain("://");
  for (const file of among(/Cargo\.lock$/)) {
    const sources = new Set([...read(file).matchAll(/^source = "(.+)"$/gm)].map(([, source]) => source));
    expect([...sources], file).toEqual(["registry+https://github.com/rust-lang/crates.io-index"]);
  }
});
