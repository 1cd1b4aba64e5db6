// Builds what is stale and runs the tests. Words go to vitest; without any, the Rust tests run too.

import { buildNative, buildTypeScript } from "./build.mjs";
import { localProgram, run } from "./run.mjs";

const words = process.argv.slice(2);
buildTypeScript();
await buildNative();
if (words.length === 0) run("cargo", ["test", "--workspace", "--locked", "--quiet"]);
run(process.execPath, [localProgram("vitest/vitest.mjs"), "run", ...words]);
