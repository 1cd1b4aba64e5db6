// Builds binaries for other systems and looks at what they ask of them: `node scripts/cross.mjs
// [--install-tools] [TARGET …]`, by default all of them. On a Mac with the targets of rustup plain cargo
// does it; elsewhere Debian's cargo with the sources of the standard library, and zig as the linker.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { installBinary } from "./build.mjs";
import { readMachO } from "./macho.mjs";
import { fail, ROOT, run } from "./run.mjs";
import { CACHE, CROSS_TARGETS, MINIMUM_MACOS } from "./targets.mjs";

const PYTHON_PACKAGES = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
const DEBIAN_PACKAGES = ["rustc-web", "cargo-web", "rust-web-src"];
const PYTHON = join(CACHE, "python");
/** Debian's own; rustup's come first on a developer's PATH and cannot build for targets they lack. */
const CARGO = "/usr/bin/cargo";

const words = process.argv.slice(2);
const names = words.filter((word) => word !== "--install-tools");
const unknown = names.filter((name) => !(name in CROSS_TARGETS));
if (unknown.length > 0) fail(`no such target: ${unknown.join(", ")} (there are ${Object.keys(CROSS_TARGETS).join(", ")})`);
if (words.includes("--install-tools")) installTools();
for (const name of names.length > 0 ? names : Object.keys(CROSS_TARGETS)) build(name);

function installTools() {
  if (process.platform === "darwin") return;
  if (!existsSync(CARGO)) {
    run("apt-get", ["update", "--quiet"]);
    run("apt-get", ["install", "--yes", "--quiet", "--no-install-recommends", ...DEBIAN_PACKAGES]);
  }
  if (!existsSync(join(PYTHON, "bin/cargo-zigbuild"))) {
    mkdirSync(PYTHON, { recursive: true });
    run("python3", ["-m", "pip", "install", "--quiet", "--upgrade", "--target", PYTHON, ...PYTHON_PACKAGES]);
  }
}

function build(name) {
  const { triple, library } = CROSS_TARGETS[name];
  const output = join(CACHE, "target");
  const common = ["--release", "--locked", "--quiet", "-p", "proc-safe-addon", "--target", triple];
  const env = { ...process.env, CARGO_TARGET_DIR: output, MACOSX_DEPLOYMENT_TARGET: MINIMUM_MACOS };
  if (process.platform === "darwin") {
    process.stdout.write(`${name}: cargo of the PATH\n`);
    run("cargo", ["build", ...common], { env });
  } else {
    process.stdout.write(`${name}: ${CARGO}, its standard library from source, and zig\n`);
    const zigbuild = join(PYTHON, "bin/cargo-zigbuild");
    for (const tool of [CARGO, zigbuild]) {
      if (!existsSync(tool)) fail(`${tool} is missing: node scripts/cross.mjs --install-tools (Debian, as root)`);
    }
    const path = ["/usr/bin", process.env.PATH].join(delimiter);
    const ours = { PATH: path, CARGO, RUSTC: "/usr/bin/rustc", RUSTC_BOOTSTRAP: "1", PYTHONPATH: PYTHON };
    const standardLibrary = "-Zbuild-std=std,panic_abort,panic_unwind";
    run(zigbuild, ["zigbuild", standardLibrary, ...common], { env: { ...env, ...ours } });
  }
  const file = join(output, triple, "release", library);
  checkDarwin(name, file);
  installBinary(file, join(ROOT, `prebuilds/${name}.node`));
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
