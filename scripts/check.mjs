// The whole gate: formatting, lints, types, tests (with the examples of the documents), and the
// package as it would be published.

import { buildTypeScript } from "./build.mjs";
import { localProgram, run } from "./run.mjs";

const node = (program, ...words) => run(process.execPath, [localProgram(program), ...words]);

run("cargo", ["fmt", "--check"]);
run("cargo", ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"]);
buildTypeScript();
node("oxlint/bin/oxlint", "--deny-warnings");
node("typescript/bin/tsc", "-p", "test/tsconfig.json");
run(process.execPath, ["scripts/test.mjs"]);
run(process.execPath, ["scripts/pack-check.mjs"]);
