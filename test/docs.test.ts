// Every code block in README and docs is run, or checked by the compiler.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { runScript, stagedPackage } from "./support/node.ts";
import { ROOT } from "./support/paths.ts";

interface Block {
  readonly language: string;
  readonly text: string;
}

function blocksOf(file: string): Block[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = "", body = ""]) => ({ language, text: body }));
}

const DOCUMENTS = ["README.md", ...readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];

for (const file of DOCUMENTS) {
  for (const [index, { language, text }] of blocksOf(file).entries()) {
    test(`${file}, block ${index + 1} (${language})`, () => void check(language, text));
  }
}

test("links lead somewhere", () => {
  for (const file of DOCUMENTS) {
    for (const [, target = ""] of readFileSync(join(ROOT, file), "utf8").matchAll(/\]\(([^)#]+)[^)]*\)/g)) {
      if (!/^https?:/.test(target)) expect(() => readFileSync(join(ROOT, file, "..", target)), `${file} → ${target}`).not.toThrow();
    }
  }
});

function check(language: string, text: string): unknown {
  if (language === "js") return bundles(text) || runModule(text);
  if (language === "ts") return typeCheck(text);
  if (language === "sh") return shell(text);
  if (language === "console") return session(text);
  if (language === "text") return; // a drawing
  throw new Error(`no check for a block of "${language}"`);
}

/** What bundlers are told is part of a program that `scripts/package-smoke.mjs` bundles and runs. */
function bundles(text: string): boolean {
  if (!/from "(esbuild|node:sea)"|experiments:/.test(text)) return false;
  const programs = readdirSync(join(ROOT, "test/package"), { withFileTypes: true }).filter((entry) => entry.isFile());
  expect(programs.some(({ name }) => readFileSync(join(ROOT, "test/package", name), "utf8").includes(text))).toBe(true);
  return true;
}

function runModule(text: string): void {
  const { status, stderr } = runScript(`const module = await import(${JSON.stringify(dataModule(text))});`);
  expect([status, stderr]).toEqual([0, ""]);
}

/** A file beside the staged package, so that the block's own imports resolve. */
function dataModule(text: string): string {
  const file = join(stagedPackage(), "block.mjs");
  writeFileSync(file, text.replaceAll("console.log(", "void ("));
  return `${pathToFileURL(file).href}?${Math.random()}`;
}

function typeCheck(text: string): void {
  const file = join(stagedPackage(), "block.mts");
  writeFileSync(file, text);
  const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "--types", "node", "--typeRoots", join(ROOT, "node_modules/@types")];
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { stdout, status } = spawnSync(process.execPath, [tsc, ...options, file], { cwd: stagedPackage(), encoding: "utf8" });
  expect([status, stdout]).toEqual([0, ""]);
}

/** Commands of a checkout rebuild what other tests are using, so `.ci/run` runs them instead. */
function shell(text: string): void {
  const run = readFileSync(join(ROOT, "scripts/ci.mjs"), "utf8");
  for (const line of text.trim().split("\n")) expect(run).toContain(`step("${line}", `);
}

const TREE_LINE = /^ *\d+ {2}(?:[│ ] {2})*(?:[├└]─ )?.+$/;

/** `$ proc-safe …`, and under it lines of the form that the real command prints now. */
function session(text: string): void {
  const [, words = "", shown = ""] = /^\$ proc-safe (.*)\n([\s\S]*)$/.exec(text) ?? [];
  const real = words.replace(/\d+/, String(process.pid)).split(" ");
  const { stdout, status } = spawnSync(process.execPath, [join(ROOT, "dist/cli.js"), ...real], { encoding: "utf8" });
  expect(status).toBe(0);
  const [ours, theirs] = [shown, stdout].map((output) => output.trimEnd().split("\n"));
  if (real[0] === "tree") {
    for (const line of [...(ours ?? []), ...(theirs ?? [])]) expect(line).toMatch(TREE_LINE);
  } else {
    const head = (lines: string[] = []): string[] => (lines[0] ?? "").trim().split(/ +/);
    expect(head(theirs)).toEqual(head(ours));
  }
}
