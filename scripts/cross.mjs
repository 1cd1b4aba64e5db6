// Builds the binaries of all targets and looks at what they ask of their systems: `node scripts/cross.mjs
// [--install-tools] [--lint] [TARGET …]`, by default all of them. On Debian, with its cargo and the sources of its
// standard library, which is built for each target once; the linker is zig, for Windows mingw.
// `--lint` looks at the code that only those systems compile, and builds nothing.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { delimiter, join } from "node:path";
import { complaintsAbout } from "./artifact.mjs";
import { installBinary } from "./build.mjs";
import { fail, ROOT, run } from "./run.mjs";
import { CACHE, MINGW, TARGETS } from "./targets.mjs";

const PYTHON_PACKAGES = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
const DEBIAN_PACKAGES = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy", "gcc-mingw-w64-x86-64"];
const PYTHON = join(CACHE, "python");
/** Debian's own; rustup's come first on a developer's PATH and cannot build for targets they lack. */
const CARGO = "/usr/bin/cargo";
const CLIPPY = "/usr/bin/cargo-clippy";
const ZIGBUILD = join(PYTHON, "bin/cargo-zigbuild");
const OUTPUT = join(CACHE, "target");
const isForWindows = (name) => name.startsWith("win32-");

const words = process.argv.slice(2);
const options = words.filter((word) => word.startsWith("--"));
const names = words.filter((word) => !word.startsWith("--"));
const unknown = [
  ...options.filter((word) => !["--install-tools", "--lint"].includes(word)),
  ...names.filter((name) => !Object.hasOwn(TARGETS, name)),
];
if (unknown.length > 0) fail(`no such option or target: ${unknown.join(", ")} (there are ${Object.keys(TARGETS).join(", ")})`);
if (options.includes("--install-tools")) installTools();
needTools([CARGO, MINGW, ZIGBUILD]);
for (const name of names.length > 0 ? names : Object.keys(TARGETS)) {
  if (options.includes("--lint")) lint(name);
  else build(name);
}

function installTools() {
  const hasPip = spawnSync("python3", ["-m", "pip", "--version"], { stdio: "ignore" }).status === 0;
  if (!hasPip || ![CARGO, CLIPPY, MINGW].every(existsSync)) {
    run("apt-get", ["update", "--quiet"]);
    run("apt-get", ["install", "--yes", "--quiet", "--no-install-recommends", ...DEBIAN_PACKAGES, ...(hasPip ? [] : ["python3-pip"])]);
  }
  if (!existsSync(ZIGBUILD)) {
    mkdirSync(PYTHON, { recursive: true });
    run("python3", ["-m", "pip", "install", "--quiet", "--upgrade", "--target", PYTHON, ...PYTHON_PACKAGES]);
  }
}

function needTools(tools) {
  for (const tool of tools) {
    if (!existsSync(tool)) fail(`${tool} is missing: node scripts/cross.mjs --install-tools (Debian, as root)`);
  }
}

/** Code for one system only is not seen by the lints of another. */
function lint(name) {
  cargo(name, "clippy", ["-p", "proc-safe-core", "-p", "proc-safe-addon"], ["--", "-D", "warnings"]);
  process.stdout.write(`${name}: no lint\n`);
}

function build(name) {
  const { triple, library } = TARGETS[name];
  cargo(name, "build", ["-p", "proc-safe-addon"]);
  const file = join(OUTPUT, triple, "release", library);
  const bytes = readFileSync(file);
  const complaints = complaintsAbout(name, bytes);
  if (complaints.length > 0) fail(`${name}: ${complaints.join("; ")}`);
  installBinary(file, join(ROOT, `prebuilds/${name}.node`));
  process.stdout.write(`${name}: ${bytes.length} bytes, and nothing to complain about\n`);
}

/** No option names the checkout: the standard library would be built anew for each. */
function cargo(name, command, packages, rest = []) {
  const { triple, oldest } = TARGETS[name];
  const suffix = oldest.glibc === undefined ? "" : `.${oldest.glibc}`;
  const words = [
    "-Zbuild-std=std,panic_abort,panic_unwind",
    "-Zbuild-std-features=", // without the printing of backtraces, a third of the binary
    "-Ztrim-paths",
    "--release",
    "--locked",
    "--quiet",
    ...packages,
    `--target=${triple}${suffix}`,
    ...rest,
  ];
  const env = {
    ...process.env,
    PATH: ["/usr/bin", process.env.PATH].join(delimiter),
    PYTHONPATH: PYTHON,
    CARGO,
    RUSTC: "/usr/bin/rustc",
    RUSTC_BOOTSTRAP: "1",
    CARGO_TARGET_DIR: OUTPUT,
    CARGO_PROFILE_RELEASE_TRIM_PATHS: "all",
    MACOSX_DEPLOYMENT_TARGET: oldest.macOS,
    ...(oldest.musl !== undefined && { RUSTFLAGS: "-Ctarget-feature=-crt-static" }), // it is a library, loaded by musl's loader
    ...(oldest.macOS !== undefined && { RUSTFLAGS: "-Zdefault-visibility=hidden" }), // zig knows no list of exports
    ...(isForWindows(name) && { LIBNODE_PATH: emptyLibrary() }),
  };
  if (isForWindows(name)) run(CARGO, [command, ...words], { env });
  else run(ZIGBUILD, [command === "build" ? "zigbuild" : command, ...words], { env });
}

/** napi-build wants a libnode.dll to link with. Nothing is taken from it: the symbols are looked up in node.exe. */
function emptyLibrary() {
  const directory = join(CACHE, "windows/libnode");
  const library = join(directory, "libnode.dll");
  if (existsSync(library)) return directory;
  mkdirSync(directory, { recursive: true });
  const made = `${library}.${process.pid}`;
  run(MINGW, ["-shared", "-o", made, "-x", "c", "-"], { input: "int proc_safe_nothing;\n", stdio: ["pipe", "inherit", "inherit"] });
  renameSync(made, library);
  return directory;
}
