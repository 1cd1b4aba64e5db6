// Installs and builds what is missing, then does what was asked: `test [WORD …]` runs the tests,
// `check` the whole gate, anything else is a command of proc-safe. Everything but the answer goes to
// standard error.

import { spawnSync } from "node:child_process";
import { existsSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { installWith } from "./pnpm.mjs";
import { fail, ROOT, run } from "./run.mjs";

const LEAST_NODE = [20, 19];
const LEAST_RUST = [1, 88];

needNode();
needRust();
needCompiler();
install();

const [command = "list", ...words] = process.argv.slice(2);
if (command === "test" || command === "check") {
  run(process.execPath, [`scripts/${command}.mjs`, ...words]);
} else {
  run(process.execPath, ["scripts/build.mjs"], { stdio: ["inherit", 2, 2] });
  run(process.execPath, ["dist/cli.js", command, ...words]);
}

function needNode() {
  if (isOlder(process.versions.node, LEAST_NODE)) {
    fail(`proc-safe needs Node.js ${LEAST_NODE.join(".")} or later; this is ${process.versions.node}`);
  }
}

function needRust() {
  const version = /^cargo ([\d.]+)/.exec(output("cargo", ["--version"]) ?? "")?.[1];
  const least = LEAST_RUST.join(".");
  if (version === undefined) {
    fail(`proc-safe needs Rust ${least} or later, and there is no cargo on the PATH: https://rustup.rs`);
  }
  if (isOlder(version, LEAST_RUST)) fail(`proc-safe needs Rust ${least} or later; this is ${version}`);
}

function needCompiler() {
  if (process.platform === "win32" || output("cc", ["--version"]) !== undefined) return;
  fail("proc-safe needs a C compiler for linking and for its test fixtures, and there is no cc on the PATH");
}

/** The dev dependencies, by pnpm, unless they are as the lock file says. */
function install() {
  const lock = join(ROOT, "pnpm-lock.yaml");
  const installed = join(ROOT, "node_modules/.modules.yaml");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  installWith([]);
  utimesSync(installed, new Date(), new Date());
}

/** What a program prints; `undefined` if there is no such program or it fails. */
function output(command, words) {
  const result = spawnSync(command, words, { cwd: ROOT, encoding: "utf8" });
  return result.status === 0 ? result.stdout.trim() : undefined;
}

function isOlder(version, [major, minor]) {
  const [ours = 0, sub = 0] = version.split(".").map(Number);
  return ours < major || (ours === major && sub < minor);
}
