// Compiles the C fixtures that are stale, once a run, before any test.

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { fixturePath, FIXTURES, FIXTURE_BUILD } from "./paths.ts";

export default function buildFixtures(): void {
  if (process.platform === "win32") return;
  mkdirSync(FIXTURE_BUILD, { recursive: true });
  const sources = readdirSync(FIXTURES);
  const headers = sources.filter((name) => name.endsWith(".h")).map((name) => `${FIXTURES}/${name}`);
  for (const name of sources.filter((source) => source.endsWith(".c"))) {
    const source = `${FIXTURES}/${name}`;
    const program = fixturePath(name.replace(/\.c$/, ""));
    const newest = Math.max(...[source, ...headers].map((file) => statSync(file).mtimeMs));
    if ((statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0) > newest) continue;
    execFileSync("cc", ["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, source], {
      stdio: "inherit",
    });
  }
}
