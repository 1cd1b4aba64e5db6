// Compiles the C programs that bring processes into states, for tests and proofs.

import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ROOT, run } from "./run.mjs";

const SOURCES = join(ROOT, "test/fixtures");
export const FIXTURE_BUILD = join(ROOT, "test/.build");

/** Those of the system that we are on: the others do not compile here. */
export function fixtureNames() {
  if (process.platform === "win32") return [];
  const names = readdirSync(SOURCES).filter((name) => name.endsWith(".c")).map((name) => name.slice(0, -2));
  return names.filter((name) => name.startsWith("darwin-") === (process.platform === "darwin"));
}

/** The path of the compiled program. */
export function compileFixture(name) {
  const source = join(SOURCES, `${name}.c`);
  const program = join(FIXTURE_BUILD, name);
  const headers = readdirSync(SOURCES).filter((file) => file.endsWith(".h")).map((file) => join(SOURCES, file));
  const newest = Math.max(...[source, ...headers].map((file) => statSync(file).mtimeMs));
  if ((statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0) > newest) return program;
  mkdirSync(FIXTURE_BUILD, { recursive: true });
  run("cc", ["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, source]);
  return program;
}
