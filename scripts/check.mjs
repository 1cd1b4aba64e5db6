// The whole gate: formatting, lints, types, tests (with the examples of the documents), packing list.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { buildTypeScript } from "./build.mjs";
import { fail, localProgram, ROOT, run } from "./run.mjs";

const node = (program, ...words) => run(process.execPath, [localProgram(program), ...words]);

run("cargo", ["fmt", "--check"]);
run("cargo", ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"]);
buildTypeScript();
node("oxlint/bin/oxlint", "--deny-warnings");
node("typescript/bin/tsc", "-p", "test/tsconfig.json");
run(process.execPath, ["scripts/test.mjs"]);
checkPackingList();
node("publint/src/cli.js", "--strict", "--pack", "npm");

/** Exactly the files that a user needs, and all of them. */
function checkPackingList() {
  const { stdout } = run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  const packed = JSON.parse(stdout)[0].files.map((file) => file.path);
  const allowed = /^(dist\/[\w-]+\.(js|d\.ts)|prebuilds\/[\w-]+\.node|package\.json|README\.md|CHANGELOG\.md|LICENSE)$/;
  const strange = packed.filter((path) => !allowed.test(path));
  if (strange.length > 0) fail(`the package would hold ${strange.join(", ")}`);
  const { exports, bin } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const promised = [...Object.values(exports).flatMap((entry) => Object.values(entry)), ...Object.values(bin)];
  const wanted = promised.filter((path) => typeof path === "string" && path.startsWith("./"));
  const missing = wanted.map((path) => path.slice(2)).filter((path) => !packed.includes(path));
  if (missing.length > 0) fail(`the package would lack ${missing.join(", ")}`);
  if (!packed.some((path) => path.endsWith(".node"))) fail("the package would hold no binary");
}
