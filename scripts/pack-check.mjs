// Looks at the package as it would be published: `node scripts/pack-check.mjs [--all-targets]`. Exactly the files
// that a user needs, its size, its licences, and what bundlers and TypeScript make of its exports. A development
// build has the binaries that were built; `--all-targets` wants those of all, and builds none.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { buildNative, buildTypeScript } from "./build.mjs";
import { fail, localProgram, ROOT, run } from "./run.mjs";
import { THIRD_PARTY, thirdPartyText } from "./third-party.mjs";

const LARGEST_TARBALL = 2_000_000;
const DOCUMENTS = ["CHANGELOG.md", "LICENSE", "README.md", "THIRD-PARTY-LICENSES", "package.json"];
/** What npm would run on the user's machine. */
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall", "prepare"];
const DEPENDENCIES = ["dependencies", "optionalDependencies", "peerDependencies", "bundleDependencies"];

const words = process.argv.slice(2);
if (words.some((word) => word !== "--all-targets")) fail("usage: node scripts/pack-check.mjs [--all-targets]");

buildTypeScript();
if (words.length === 0) await buildNative();
const { TARGETS } = await import("../dist/target.js");
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const scratch = mkdtempSync(join(tmpdir(), "proc-safe-pack-"));
process.on("exit", () => rmSync(scratch, { recursive: true }));

const { files, filename } = pack();
const tarball = join(scratch, filename);
checkFiles(files.map(({ path }) => path));
checkSize(statSync(tarball).size);
checkManifest();
checkLicences();
run(process.execPath, [localProgram("publint/src/cli.js"), "run", tarball, "--strict"]);
await checkTypes(readFileSync(tarball));

function pack() {
  const { stdout } = run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", scratch], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  const answer = JSON.parse(stdout);
  return Array.isArray(answer) ? answer[0] : Object.values(answer)[0]; // npm 12 answers by name
}

function checkFiles(packed) {
  const modules = readdirSync(join(ROOT, "src")).map((name) => name.replace(/\.ts$/, ""));
  const compiled = modules.flatMap((name) => [`dist/${name}.js`, `dist/${name}.d.ts`]);
  const binaries = TARGETS.map((target) => `prebuilds/${target}.node`);
  const strange = packed.filter((path) => ![...DOCUMENTS, ...compiled, ...binaries].includes(path));
  if (strange.length > 0) fail(`the package would hold ${strange.join(", ")}`);
  const wanted = [...DOCUMENTS, ...compiled, ...(words.includes("--all-targets") ? binaries : [])];
  const missing = wanted.filter((path) => !packed.includes(path));
  if (missing.length > 0) fail(`the package would lack ${missing.join(", ")}`);
  if (!packed.some((path) => binaries.includes(path))) fail("the package would hold no binary");
}

function checkSize(size) {
  if (size > LARGEST_TARBALL) fail(`the package has ${size} bytes, and may have ${LARGEST_TARBALL}`);
  process.stdout.write(`${files.length} files, ${size} bytes packed\n`);
}

/** Nothing is fetched, and nothing runs, when it is installed. */
function checkManifest() {
  const needs = DEPENDENCIES.filter((key) => manifest[key] !== undefined);
  const scripts = INSTALL_SCRIPTS.filter((name) => manifest.scripts?.[name] !== undefined);
  if (needs.length + scripts.length > 0) fail(`package.json has ${[...needs, ...scripts].join(", ")}`);
}

function checkLicences() {
  if (readFileSync(THIRD_PARTY, "utf8") !== thirdPartyText()) fail(`${THIRD_PARTY} is old: node scripts/third-party.mjs`);
}

/**
 * With TypeScript's two ways of today. Node's old algorithm knows no exports; a module of ours that CommonJS
 * requires is one of ECMAScript, which every Node that this package is for can do.
 */
async function checkTypes(data) {
  const { types, problems } = await checkPackage(createPackageFromTarballData(data));
  if (types === false) fail("the package would have no types");
  const real = problems.filter(({ kind, resolutionKind }) => resolutionKind !== "node10" && kind !== "CJSResolvesToESM");
  if (real.length > 0) fail(`the types are wrong: ${JSON.stringify(real, undefined, 2)}`);
}
