// Builds binaries for other systems and looks at what they ask of them: `node scripts/cross.mjs
// [--install-tools] [--lint] [TARGET …]`, by default all of them. On a Mac with the targets of rustup plain
// cargo does it; elsewhere Debian's cargo with the sources of the standard library, and zig as the linker.
// `--lint` looks at the code that only those systems compile, and builds nothing.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { installBinary } from "./build.mjs";
import { readMachO } from "./macho.mjs";
import { fail, ROOT, run } from "./run.mjs";
import { CACHE, CROSS_TARGETS, MINIMUM_MACOS } from "./targets.mjs";

const PYTHON_PACKAGES = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
const DEBIAN_PACKAGES = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy"];
const PYTHON = join(CACHE, "python");
/** Debian's own; rustup's come first on a developer's PATH and cannot build for targets they lack. */
const CARGO = "/usr/bin/cargo";
const CLIPPY = "/usr/bin/cargo-clippy";
const ZIGBUILD = join(PYTHON, "bin/cargo-zigbuild");
const OUTPUT = join(CACHE, "target");

const words = process.argv.slice(2);
const options = words.filter((word) => word.startsWith("--"));
const names = words.filter((word) => !word.startsWith("--"));
const unknown = [
  ...options.filter((word) => !["--install-tools", "--lint"].includes(word)),
  ...names.filter((name) => !(name in CROSS_TARGETS)),
];
if (unknown.length > 0) fail(`no such option or target: ${unknown.join(", ")} (there are ${Object.keys(CROSS_TARGETS).join(", ")})`);
if (options.includes("--install-tools")) installTools();
for (const name of names.length > 0 ? names : Object.keys(CROSS_TARGETS)) {
  if (options.includes("--lint")) lint(name);
  else build(name);
}

function installTools() {
  if (process.platform === "darwin") return;
  if (!existsSync(CARGO) || !existsSync(CLIPPY)) {
    run("apt-get", ["update", "--quiet"]);
    run("apt-get", ["install", "--yes", "--quiet", "--no-install-recommends", ...DEBIAN_PACKAGES]);
  }
  if (!existsSync(ZIGBUILD)) {
    mkdirSync(PYTHON, { recursive: true });
    run("python3", ["-m", "pip", "install", "--quiet", "--upgrade", "--target", PYTHON, ...PYTHON_PACKAGES]);
  }
}

/** Code for one system only is not seen by the lints of another. */
function lint(name) {
  cargo(name, "clippy", ["-p", "proc-safe-core", "-p", "proc-safe-addon"], ["--", "-D", "warnings"]);
  process.stdout.write(`${name}: no lint\n`);
}

function build(name) {
  const { triple, library } = CROSS_TARGETS[name];
  cargo(name, "build", ["-p", "proc-safe-addon"]);
  const file = join(OUTPUT, triple, "release", library);
  checkDarwin(name, file);
  installBinary(file, join(ROOT, `prebuilds/${name}.node`));
}

function cargo(name, command, packages, rest = []) {
  const common = ["--release", "--locked", "--quiet", ...packages, "--target", CROSS_TARGETS[name].triple];
  const env = { ...process.env, CARGO_TARGET_DIR: OUTPUT, MACOSX_DEPLOYMENT_TARGET: MINIMUM_MACOS };
  if (process.platform === "darwin") {
    process.stdout.write(`${name}: cargo of the PATH\n`);
    run("cargo", [command, ...common, ...rest], { env });
    return;
  }
  process.stdout.write(`${name}: ${CARGO}, its standard library from source, and zig\n`);
  for (const tool of [CARGO, ZIGBUILD]) {
    if (!existsSync(tool)) fail(`${tool} is missing: node scripts/cross.mjs --install-tools (Debian, as root)`);
  }
  const path = ["/usr/bin", process.env.PATH].join(delimiter);
  const ours = { PATH: path, CARGO, RUSTC: "/usr/bin/rustc", RUSTC_BOOTSTRAP: "1", PYTHONPATH: PYTHON };
  const zigbuild = command === "build" ? "zigbuild" : command;
  const standardLibrary = "-Zbuild-std=std,panic_abort,panic_unwind";
  run(ZIGBUILD, [zigbuild, standardLibrary, ...common, ...rest], { env: { ...env, ...ours } });
}

/** What it wants must be on every macOS that it is for: there is no Mac here to find out. */
function checkDarwin(name, file) {
  const { imports, libraries, minimumSystem } = readMachO(readFileSync(file));
  const allowed = new Set(readFileSync(join(ROOT, "scripts/darwin-imports.txt"), "utf8").split("\n"));
  const strange = imports.filter((symbol) => !allowed.has(symbol) && !/^_napi_\w+$/.test(symbol));
  if (strange.length > 0) fail(`${name} imports ${strange.join(", ")}, not in scripts/darwin-imports.txt`);
  const foreign = libraries.filter((library) => library !== "/usr/lib/libSystem.B.dylib");
  if (foreign.length > 0) fail(`${name} needs ${foreign.join(", ")}`);
  if (minimumSystem !== MINIMUM_MACOS) fail(`${name} is for macOS ${minimumSystem}, not ${MINIMUM_MACOS}`);
  process.stdout.write(`${name}: ${imports.length} imports, all known; macOS ${minimumSystem} or later\n`);
}
