// Runs scripts/conformance.mjs on each binary in prebuilds/ as scripts/targets.mjs says, on Debian for x64: `node
// scripts/execute.mjs [--install-tools] [TARGET …]`, by default all of them. What answered what goes to conformance.json;
// prints a table and ends with one line of counts.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { complaintsAbout } from "./artifact.mjs";
import { buildTypeScript } from "./build.mjs";
import { fetchNode, NODES } from "./nodes.mjs";
import { fail, ROOT, run } from "./run.mjs";
import { TARGETS } from "./targets.mjs";
import { installWine, startWine, windowsPath } from "./wine.mjs";

const DEBIAN_PACKAGES = ["qemu-user", "libc6-arm64-cross", "libstdc++6-arm64-cross", "musl"];
const QEMU = "/usr/bin/qemu-aarch64";
const INSTALLED = [QEMU, "/usr/aarch64-linux-gnu/lib/libstdc++.so.6", "/lib/ld-musl-x86_64.so.1"];
const NODE_VERSIONS = [20, 22, 24, 26];
const MINUTE = 60_000;

const words = process.argv.slice(2);
const names = words.filter((word) => word !== "--install-tools");
const unknown = names.filter((name) => !Object.hasOwn(TARGETS, name));
if (unknown.length > 0) fail(`no such option or target: ${unknown.join(", ")} (there are ${Object.keys(TARGETS).join(", ")})`);
if (names.length < words.length) installTools();

const scratch = mkdtempSync(join(tmpdir(), "proc-safe-execute-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));
const script = join(scratch, "conformance.mjs");
cpSync(join(ROOT, "scripts/conformance.mjs"), script);
buildTypeScript();

/** How a program of Node is run, for each way of executing; what it printed. */
const RUNNERS = {
  native: (name) => NODE_VERSIONS.map((version) => onNode(name, ...nodeOf(version))),
  qemu: (name) => [onNode(name, QEMU, "-L", NODES[name].prefix, NODES[name].program)],
  musl: (name) => [onNode(name, NODES[name].program)],
  "qemu-musl": (name) => RUNNERS.qemu(name),
  rig: (name) => [inRig(name)],
  wine: (name) => [underWine(name)],
};

const proofs = (names.length > 0 ? names : Object.keys(TARGETS)).flatMap(prove);
writeFileSync(join(ROOT, "conformance.json"), `${JSON.stringify(proofs, undefined, 1)}\n`);
for (const line of tableOf(proofs)) process.stdout.write(`${line}\n`);
for (const { target, error } of proofs.flatMap((proof) => proof.failures.map((error) => ({ ...proof, error })))) {
  process.stdout.write(`${target}: ${error}\n`);
}
const sum = (key) => proofs.reduce((total, proof) => total + proof[key], 0);
process.stdout.write(`${sum("passed")} passed, ${sum("failed")} failed, 0 skipped\n`);
process.exitCode = sum("failed") === 0 ? 0 : 1;

function installTools() {
  if (!INSTALLED.every(existsSync)) {
    run("apt-get", ["update", "--quiet"]);
    run("apt-get", ["install", "--yes", "--quiet", "--no-install-recommends", ...DEBIAN_PACKAGES]);
  }
  for (const name of Object.keys(NODES)) fetchNode(name);
  installWine();
  run(process.execPath, ["rig/build.mjs"]);
}

/** That the binary is what it should be counts as one; what it answers, once for each Node. */
function prove(name) {
  const complaints = complaintsAbout(name, readFileSync(join(ROOT, `prebuilds/${name}.node`)));
  const looked = proof(name, { node: "none" }, complaints, 1);
  if (TARGETS[name].execution === undefined || complaints.length > 0) return [looked];
  install(name);
  return [looked, ...RUNNERS[TARGETS[name].execution](name).map((answer) => judge(name, answer))];
}

/** As it is in a user's folder, without the binaries of other systems. */
function install(name) {
  const home = join(scratch, name, "node_modules/proc-safe");
  mkdirSync(join(home, "prebuilds"), { recursive: true });
  cpSync(join(ROOT, "dist"), join(home, "dist"), { recursive: true });
  for (const file of ["package.json", `prebuilds/${name}.node`]) cpSync(join(ROOT, file), join(home, file));
}

function judge(name, { status, said }) {
  const line = said.split("\n").findLast((some) => some.startsWith('{"target":'));
  if (line === undefined) return proof(name, { node: "?" }, [`status ${status}, and no answer: ${said.slice(-2000)}`], 1);
  const answer = JSON.parse(line);
  const failures = answer.checks.filter(({ error }) => error !== undefined).map(({ name: check, error }) => `${check}: ${error}`);
  if (status !== 0 && failures.length === 0) failures.push(`ended with status ${status}`);
  return proof(name, answer, failures, answer.checks.length);
}

function proof(target, { node, version, checks }, failures, count) {
  const failed = failures.length;
  return { target, execution: TARGETS[target].execution ?? null, node, version, passed: Math.max(count - failed, 0), failed, failures, checks };
}

function onNode(name, program, ...rest) {
  const options = { cwd: scratch, encoding: "utf8", timeout: 5 * MINUTE, killSignal: "SIGKILL" };
  const { status, stdout, stderr, error } = spawnSync(program, [...rest, script, join(scratch, name), name], options);
  return { status, said: error === undefined ? `${stderr}\n${stdout}` : error.message };
}

function nodeOf(version) {
  return process.versions.node.startsWith(`${version}.`) ? [process.execPath] : ["npx", "-y", "-p", `node@${version}`, "node"];
}

function inRig(name) {
  return onNode(name, process.execPath, "--import", new URL("../rig/world.mjs", import.meta.url).href);
}

function underWine(name) {
  const { node, said } = startWine(scratch);
  const status = node([windowsPath(script), windowsPath(join(scratch, name)), name]);
  return { status, said: readFileSync(said, "utf8") };
}

function tableOf(proofs) {
  const rows = proofs.map(({ target, execution, node, passed, failed }) => [target, execution ?? "-", node, passed, failed]);
  const head = ["binary", "executed", "Node", "passed", "failed"];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
}
