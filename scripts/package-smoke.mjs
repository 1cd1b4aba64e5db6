// Installs the packed package alone, as its users do, and runs it: `node scripts/package-smoke.mjs [TARBALL]`, by
// default of this checkout. On Linux. Each check runs a program of test/package; the proof of all is
// target/package-smoke.json, and the last line counts them. What only this needs is installed in the build cache.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { buildNative, buildTypeScript } from "./build.mjs";
import { PNPM } from "./pnpm.mjs";
import { fail, localProgram, ROOT, run } from "./run.mjs";
import { CACHE } from "./targets.mjs";

const SOURCES = join(ROOT, "test/package");
const PROOF = join(ROOT, "target/package-smoke.json");
/** The first that the package is for, and the newest of each line. */
const NODES = { "20.19": "20.19.0", 22: "22.23.3", 24: "24.21.0", 26: "26.10.0" };
const TOOLS = {
  bun: "1.4.5",
  deno: "2.9.6",
  esbuild: "0.28.2",
  postject: "1.0.0-alpha.6",
  webpack: "5.113.0",
  "webpack-cli": "7.3.1",
  ...Object.fromEntries(Object.entries(NODES).map(([major, version]) => [`node${major}`, `npm:node-linux-${process.arch}@${version}`])),
};
const PROGRAMS = ["imported.mjs", "required.cjs", "threads.mjs"];
const NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
/** With spaces, and with letters beyond ASCII. */
const PLACE = "a place – déjà vu 試す";
const LIMIT = { timeout: 120_000, killSignal: "SIGKILL" };

if (process.platform !== "linux") fail("the package is tried out on Linux");
const words = process.argv.slice(2);
if (words.length > 1 || words[0]?.startsWith("-")) fail("usage: node scripts/package-smoke.mjs [TARBALL]");

const scratch = mkdtempSync(join(realpathSync(tmpdir()), "proc-safe-package-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
chmodSync(scratch, 0o755);
const { PROC_SAFE_NATIVE: _, NODE_OPTIONS: __, ...env } = process.env;
const tarball = words.length > 0 ? resolve(words[0]) : await pack();
const tools = installTools();
const nodes = Object.fromEntries(Object.keys(NODES).map((major) => [major, join(tools, `node_modules/node${major}/bin/node`)]));
nodes[process.versions.node] = process.execPath;
const checks = [];

for (const manager of ["npm", "pnpm"]) {
  const home = join(scratch, manager, PLACE);
  await check(`${manager} installs it alone, offline`, () => installAlone(manager, home));
  await check(`${manager} installs it again while a process holds the binding`, () => replaceUnder(manager, home));
  await check(`${manager}: read-only`, () => makeReadOnly(home));
  for (const program of PROGRAMS) await check(`${manager}: ${program}, as ${process.getuid() === 0 ? "nobody" : "the owner"}`, () => answer(home, [...asNobody(), process.execPath, program]));
}
const home = join(scratch, "npm", PLACE);
for (const [major, node] of Object.entries(nodes)) {
  for (const program of PROGRAMS) await check(`Node ${major}: ${program}`, () => answer(home, [node, program]));
  await check(`Node ${major}: auto, off, require, --no-addons`, () => tryModes(home, node));
}
for (const program of PROGRAMS) {
  await check(`bun: ${program}`, () => answer(home, [tool("bun"), program]));
  await check(`deno: ${program}`, () => answer(home, [tool("deno"), "run", "--quiet", "--no-lock", "--node-modules-dir=manual", "--allow-all", program]));
}
await check("TypeScript, nodenext", () => compile(home, ["types/module.mts", "types/common.cts"], "nodenext", "nodenext"));
await check("TypeScript, bundler", () => compile(home, ["types/module.mts"], "esnext", "bundler"));
await check("esbuild, as documented", () => bundle([process.execPath, "bundle-esbuild.mjs"]));
await check("webpack, as documented", () => bundle([tool("webpack-cli")]));
await check("a single executable application", singleExecutable);
process.exitCode = report();

/** Runs a check. What it answers stands in the proof. */
async function check(name, body) {
  try {
    checks.push({ name, passed: true, answer: await body() });
  } catch (error) {
    checks.push({ name, passed: false, error: error.message });
    process.stdout.write(`FAILED: ${name}: ${error.message.slice(0, 1000)}\n`);
  }
}

/** What a program prints, which must end well and say nothing else. */
function output(cwd, [command, ...rest], more = {}) {
  const { status, signal, stdout, stderr, error } = spawnSync(command, rest, { cwd, env: { ...env, ...more }, encoding: "utf8", ...LIMIT });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${[command, ...rest].join(" ")} ended with ${status ?? signal}:\n${stdout}${stderr}`);
  return { stdout, stderr };
}

function answer(cwd, command, more) {
  const { stdout, stderr } = output(cwd, command, more);
  assert.equal(stderr, "");
  return JSON.parse(stdout);
}

async function pack() {
  buildTypeScript();
  await buildNative();
  const { stdout } = output(ROOT, ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", scratch]);
  return join(scratch, stdout.trim());
}

/** In a directory that is named by its contents and takes its place when it is whole. */
function installTools() {
  const wanted = JSON.stringify({ private: true, dependencies: TOOLS }, undefined, 2);
  const place = join(CACHE, `package-smoke-${createHash("sha256").update(wanted).digest("hex").slice(0, 16)}`);
  if (existsSync(place)) return place;
  mkdirSync(CACHE, { recursive: true });
  const room = mkdtempSync(`${place}-`);
  writeFileSync(join(room, "package.json"), wanted);
  run("npm", ["install", "--silent", "--no-audit", "--no-fund"], { cwd: room, stdio: ["ignore", 2, 2] });
  if (existsSync(place)) rmSync(room, { recursive: true }); // another run was first
  else renameSync(room, place);
  return place;
}

function tool(name) {
  return join(tools, "node_modules/.bin", name);
}

/** Root can write into what is read-only. */
function asNobody() {
  return process.getuid() === 0 ? NOBODY : [];
}

/** Offline, so nothing else can be fetched. */
function install(manager, cwd, file = tarball) {
  const [npm, pnpm] = [
    ["npm", "install", "--force", "--offline", "--silent", "--no-audit", "--no-fund", file],
    ["npx", "-y", `pnpm@${PNPM}`, "add", "--force", "--offline", "--silent", "--store-dir", join(scratch, "store"), file],
  ];
  output(cwd, manager === "npm" ? npm : pnpm);
}

function installAlone(manager, cwd) {
  mkdirSync(cwd, { recursive: true });
  cpSync(SOURCES, cwd, { recursive: true });
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ name: "consumer", version: "7.7.7", private: true }));
  install(manager, cwd);
  const packages = readdirSync(join(cwd, "node_modules")).filter((name) => !name.startsWith("."));
  assert.deepEqual(packages, ["proc-safe"]);
}

/** Another release, with other binaries: a manager keeps what it has. */
function nextRelease() {
  const file = join(scratch, "next.tgz");
  if (existsSync(file)) return file;
  const room = mkdtempSync(join(scratch, "next-"));
  output(room, ["tar", "-xzf", tarball]);
  const manifest = join(room, "package/package.json");
  writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, "utf8")), version: "99.0.0" }));
  const binaries = join(room, "package/prebuilds");
  for (const name of readdirSync(binaries)) appendFileSync(join(binaries, name), "\n");
  output(room, ["tar", "-czf", file, "package"]);
  return file;
}

/** The process has the first file; the next release and the first again come in its place. */
async function replaceUnder(manager, cwd) {
  const child = spawn(process.execPath, ["held.mjs"], { cwd, env, stdio: ["pipe", "pipe", "inherit"], ...LIMIT });
  const ended = new Promise((resolve) => child.once("close", (status, signal) => resolve(status ?? signal)));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const look = async () => {
    child.stdin.write("\n");
    const { done, value } = await lines.next();
    return done ? { ended: await ended } : JSON.parse(value);
  };
  const looks = [await look()];
  for (const file of [nextRelease(), tarball]) {
    install(manager, cwd, file);
    looks.push(await look());
  }
  child.stdin.end();
  assert.deepEqual([...looks.map(({ rows }) => rows), await ended], [1, 1, 1, 0]);
  assert.notEqual(looks[1].inode, looks[0].inode);
  assert.notEqual(looks[2].inode, looks[1].inode);
}

function makeReadOnly(cwd) {
  output(cwd, ["chmod", "-R", "a-w", "."]);
  const write = "require('fs').writeFileSync('node_modules/proc-safe/written', '')";
  const [command, ...rest] = [...asNobody(), process.execPath, "-e", write];
  const { status, stderr } = spawnSync(command, rest, { cwd, env, encoding: "utf8", ...LIMIT });
  assert.notEqual(status, 0);
  assert.match(stderr, /EACCES/);
}

function tryModes(cwd, node) {
  const ask = (mode, nodeWords = []) => answer(cwd, [node, ...nodeWords, "status.mjs"], { PROC_SAFE_NATIVE: mode });
  const ready = { state: "ready", supported: true };
  const off = { mode: "off", state: "disabled", reason: "switched-off", supported: false, thrown: "switched-off" };
  const without = { state: "unavailable", reason: "addons-disabled", supported: false, thrown: "addons-disabled" };
  assert.deepEqual(ask("auto"), { mode: "auto", ...ready });
  assert.deepEqual(ask("require"), { mode: "require", ...ready });
  assert.deepEqual(ask("off"), off);
  assert.deepEqual(ask("auto", ["--no-addons"]), { mode: "auto", ...without });
  assert.deepEqual(ask("off", ["--no-addons"]), off);
  assert.deepEqual(ask("require", ["--no-addons"]), { atImport: "helper-unavailable", reason: "addons-disabled" });
}

function compile(cwd, files, module, resolution) {
  const options = ["--ignoreConfig", "--noEmit", "--strict", "--target", "es2022", "--module", module, "--moduleResolution", resolution];
  const types = ["--types", "node", "--typeRoots", join(ROOT, "node_modules/@types")];
  output(cwd, [process.execPath, localProgram("typescript/bin/tsc"), ...options, ...types, ...files]);
}

/** A copy of the installation in which a bundler can write and is found. */
function workshop() {
  const place = mkdtempSync(join(scratch, "bundle-"));
  output(scratch, ["cp", "-rL", `${home}/.`, place]);
  output(place, ["chmod", "-R", "u+w", "."]);
  for (const name of readdirSync(join(tools, "node_modules")).filter((entry) => !entry.startsWith("."))) {
    symlinkSync(join(tools, "node_modules", name), join(place, "node_modules", name));
  }
  return place;
}

/** The bundle is run where nothing else is, under another directory's name. */
function bundle(command) {
  const place = workshop();
  output(place, command);
  const moved = mkdtempSync(join(scratch, "moved-"));
  renameSync(join(place, "out"), join(moved, "out"));
  rmSync(place, { recursive: true });
  const { path, ...rest } = answer(moved, [process.execPath, "out/app.mjs"]);
  assert.equal(dirname(path), join(moved, "out/prebuilds"));
  return rest;
}

/** Node's own way: nodejs.org's page on single executable applications. */
function singleExecutable() {
  const place = workshop();
  const { target } = answer(home, [process.execPath, "imported.mjs"]);
  output(place, [tool("esbuild"), "executable.mjs", "--bundle", "--platform=node", "--format=cjs", "--outfile=app.cjs", "--log-level=error"]);
  const asset = join(place, `node_modules/proc-safe/prebuilds/${target}.node`);
  writeFileSync(join(place, "sea.json"), JSON.stringify({ main: "app.cjs", output: "app.blob", disableExperimentalSEAWarning: true, assets: { "proc-safe.node": asset } }));
  output(place, [process.execPath, "--experimental-sea-config", "sea.json"]);
  const program = join(place, "app");
  copyFileSync(process.execPath, program);
  output(place, [tool("postject"), program, "NODE_SEA_BLOB", "app.blob", "--sentinel-fuse", "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2"]);
  rmSync(join(place, "node_modules"), { recursive: true });
  const { path, ...rest } = answer(place, [program], { TMPDIR: place });
  assert.equal(basename(path), "proc-safe.node");
  return rest;
}

function report() {
  const data = readFileSync(tarball);
  const proof = {
    package: { file: basename(tarball), bytes: data.length, sha256: createHash("sha256").update(data).digest("hex") },
    system: { platform: process.platform, arch: process.arch, release: release(), node: process.version },
    tools: { ...TOOLS, pnpm: PNPM, npm: output(ROOT, ["npm", "--version"]).stdout.trim() },
    checks,
  };
  mkdirSync(dirname(PROOF), { recursive: true });
  writeFileSync(PROOF, `${JSON.stringify(proof, undefined, 2)}\n`);
  const failed = checks.filter(({ passed }) => !passed).length;
  process.stdout.write(`${checks.length - failed} passed, ${failed} failed, 0 skipped\n`);
  return failed === 0 ? 0 : 1;
}
