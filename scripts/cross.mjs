// Builds binaries for other systems and looks at what they ask of them: `node scripts/cross.mjs
// [--install-tools] [--lint] [TARGET …]`, by default all of them. On a Mac plain cargo with the targets of rustup
// builds those for macOS; elsewhere Debian's cargo with the sources of the standard library, and as the linker zig,
// for Windows mingw.
// `--lint` looks at the code that only those systems compile, and builds nothing.

import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { delimiter, join } from "node:path";
import { installBinary } from "./build.mjs";
import { readMachO } from "./macho.mjs";
import { readImports } from "./pe.mjs";
import { fail, ROOT, run } from "./run.mjs";
import { CACHE, CROSS_TARGETS, MINGW, MINIMUM_MACOS } from "./targets.mjs";

const PYTHON_PACKAGES = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
const DEBIAN_PACKAGES = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy", "gcc-mingw-w64-x86-64"];
const PYTHON = join(CACHE, "python");
/** Debian's own; rustup's come first on a developer's PATH and cannot build for targets they lack. */
const CARGO = "/usr/bin/cargo";
const CLIPPY = "/usr/bin/cargo-clippy";
const ZIGBUILD = join(PYTHON, "bin/cargo-zigbuild");
const OUTPUT = join(CACHE, "target");
const isMac = process.platform === "darwin";
const isForWindows = (name) => name.startsWith("win32-");
const BUILDABLE = Object.keys(CROSS_TARGETS).filter((name) => !(isMac && isForWindows(name)));

const words = process.argv.slice(2);
const options = words.filter((word) => word.startsWith("--"));
const names = words.filter((word) => !word.startsWith("--"));
const unknown = [
  ...options.filter((word) => !["--install-tools", "--lint"].includes(word)),
  ...names.filter((name) => !BUILDABLE.includes(name)),
];
if (unknown.length > 0) fail(`no such option or target: ${unknown.join(", ")} (there are ${BUILDABLE.join(", ")})`);
if (options.includes("--install-tools")) installTools();
for (const name of names.length > 0 ? names : BUILDABLE) {
  if (options.includes("--lint")) lint(name);
  else build(name);
}

function installTools() {
  if (isMac) return;
  if (![CARGO, CLIPPY, MINGW].every(existsSync)) {
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
  if (isForWindows(name)) checkWindows(name, file);
  else checkDarwin(name, file);
  installBinary(file, join(ROOT, `prebuilds/${name}.node`));
}

function cargo(name, command, packages, rest = []) {
  const common = ["--release", "--locked", "--quiet", ...packages, "--target", CROSS_TARGETS[name].triple];
  const env = { ...process.env, CARGO_TARGET_DIR: OUTPUT, MACOSX_DEPLOYMENT_TARGET: MINIMUM_MACOS };
  if (isMac) {
    process.stdout.write(`${name}: cargo of the PATH\n`);
    run("cargo", [command, ...common, ...rest], { env });
    return;
  }
  const [linker, tool] = isForWindows(name) ? ["mingw", MINGW] : ["zig", ZIGBUILD];
  process.stdout.write(`${name}: ${CARGO}, its standard library from source, and ${linker}\n`);
  needTools([CARGO, tool]);
  const path = ["/usr/bin", process.env.PATH].join(delimiter);
  const ours = { ...env, PATH: path, CARGO, RUSTC: "/usr/bin/rustc", RUSTC_BOOTSTRAP: "1" };
  const words = ["-Zbuild-std=std,panic_abort,panic_unwind", ...common, ...rest];
  if (isForWindows(name)) {
    run(CARGO, [command, ...words], { env: { ...ours, LIBNODE_PATH: emptyLibrary() } });
  } else {
    run(ZIGBUILD, [command === "build" ? "zigbuild" : command, ...words], { env: { ...ours, PYTHONPATH: PYTHON } });
  }
}

function needTools(tools) {
  for (const tool of tools) {
    if (!existsSync(tool)) fail(`${tool} is missing: node scripts/cross.mjs --install-tools (Debian, as root)`);
  }
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

/** What it wants must be on every Windows that it is for. No import starts a process, or comes from libnode.dll. */
function checkWindows(name, file) {
  const imports = readImports(readFileSync(file));
  const allowed = new Set(readFileSync(join(ROOT, "scripts/windows-imports.txt"), "utf8").split("\n"));
  const strange = imports.filter((symbol) => !allowed.has(symbol));
  if (strange.length > 0) fail(`${name} imports ${strange.join(", ")}, not in scripts/windows-imports.txt`);
  process.stdout.write(`${name}: ${imports.length} imports, all known\n`);
}
