// Builds what is stale: the rig itself (rig/build/rig.node) and the Mach-O modules that its tests load.
// `node rig/build.mjs` says what it built; what it lacks, it names and fails.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const SOURCES = join(HERE, "src");
const MODULE_SOURCES = join(HERE, "test/module");
const NODE_HEADERS = fileURLToPath(new URL("../node_modules/node-api-headers/include", import.meta.url));

export const BUILD = join(HERE, "build");
export const RIG = join(BUILD, "rig.node");

/** The C module of the tests, by the linker that made it. */
export const MODULES = Object.freeze({
  zig: join(BUILD, "module-zig.node"),
  "lld-dyld-info": join(BUILD, "module-lld-dyld-info.node"),
  "lld-chained": join(BUILD, "module-lld-chained.node"),
});

const LLD_FLAGS = {
  "lld-dyld-info": ["-platform_version", "macos", "11.0", "14.0", "-no_fixup_chains"],
  "lld-chained": ["-platform_version", "macos", "13.0", "14.0", "-fixup_chains", "-init_offsets"],
};

const ZIG = ["-m", "ziglang"];

/** Why the rig cannot run here; `undefined` if it can. */
export function whyNoRig() {
  return process.platform === "linux" && process.arch === "x64" ? undefined : "needs Linux on x86_64";
}

/** Where the project's scripts keep Python packages; others may have theirs anywhere that Python looks. */
const CACHE = process.env["PROC_SAFE_BUILD_CACHE"] ?? join(homedir(), ".cache/proc-safe");
const PYTHONPATH = [process.env["PYTHONPATH"], join(CACHE, "python")].filter(Boolean).join(delimiter);
const env = { ...process.env, PYTHONPATH };

let zigFolder;

/** The folder of the Python package `ziglang`, which brings Apple's headers; `undefined` without it. */
export function findZig() {
  if (zigFolder === undefined) {
    const ask = "import os, ziglang; print(os.path.dirname(ziglang.__file__))";
    const { status, stdout } = spawnSync("python3", ["-c", ask], { encoding: "utf8", env });
    zigFolder = status === 0 ? stdout.trim() : null;
  }
  return zigFolder ?? undefined;
}

/** Runs zig's C compiler for the oldest macOS that the project supports. */
export function darwinCompiler(words, machine = "x86_64") {
  execFileSync("python3", [...ZIG, "cc", "-target", `${machine}-macos.11.0`, ...words], { stdio: "inherit", env });
}

/** Apple's linker is not free; LLVM's writes the same formats. `undefined` without it. */
function findLinker() {
  const names = ["ld64.lld", "ld64.lld-22", "ld64.lld-19"];
  return names.find((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).status === 0);
}

/** The rig, with the machine's C compiler. Returns whether it built anything. */
export function buildRig() {
  const sources = filesOf(SOURCES, /\.[ch]$/);
  if (isFresh(RIG, sources)) return false;
  mkdirSync(BUILD, { recursive: true });
  const temporary = `${RIG}.${process.pid}`;
  const flags = [
    ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden"],
    // Memory that was laid out by Darwin code is read through other types here.
    ["-fno-strict-aliasing", "-fasynchronous-unwind-tables"],
    ["-Wall", "-Wextra", "-Werror", "-Wno-builtin-declaration-mismatch", "-Wno-attributes"],
    // Thread-local destructors of the images would outlive an unloaded rig.
    ["-Wl,-z,nodelete", "-Wl,-z,now"],
    ["-isystem", NODE_HEADERS],
    extraFlags(),
  ].flat();
  const code = sources.filter((file) => file.endsWith(".c"));
  execFileSync("cc", [...flags, ...code, "-o", temporary, "-lgcc_s", "-lm", "-lpthread", "-ldl"], { stdio: "inherit" });
  renameSync(temporary, RIG);
  return true;
}

/** Such as sanitizers: RIG_CFLAGS="-fsanitize=address,undefined". */
function extraFlags() {
  return (process.env["RIG_CFLAGS"] ?? "").split(" ").filter(Boolean);
}

/** The modules of the tests, as far as there are linkers. Returns the names of what it built. */
export function buildModules() {
  const zig = findZig();
  const sources = filesOf(MODULE_SOURCES, /\.[ch]$/);
  const stale = Object.keys(MODULES).filter((name) => !isFresh(MODULES[name], sources));
  for (const name of stale) rmSync(MODULES[name], { force: true });
  if (zig === undefined || stale.length === 0) return [];
  mkdirSync(BUILD, { recursive: true });
  const scratch = mkdtempSync(join(BUILD, "module-"));
  try {
    const objects = compileModule(sources, scratch);
    return stale.filter((name) => linkModule(name, objects, zig, scratch));
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function compileModule(sources, scratch) {
  const code = sources.filter((file) => file.endsWith(".c"));
  return code.map((source, index) => {
    const object = join(scratch, `${index}.o`);
    // The tests cause faults on purpose, so no traps of the compiler's. Rust's library calls readdir_r.
    const flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-fno-sanitize=all"];
    if (source.endsWith("frameless.c")) flags.push("-fomit-frame-pointer");
    darwinCompiler([...flags, "-isystem", NODE_HEADERS, "-c", source, "-o", object]);
    return object;
  });
}

function linkModule(name, objects, zig, scratch) {
  const file = join(scratch, name);
  if (name === "zig") {
    darwinCompiler(["-shared", "-undefined", "dynamic_lookup", ...objects, "-o", file]);
  } else {
    const linker = findLinker();
    if (linker === undefined) return false;
    const stubs = writeStubs(zig, scratch);
    const words = [...LLD_FLAGS[name], "-undefined", "dynamic_lookup", "-o", file, ...objects, stubs];
    execFileSync(linker, ["-dylib", "-arch", "x86_64", ...words], { stdio: "inherit" });
  }
  renameSync(file, MODULES[name]); // a mapped file is never written to
  return true;
}

/** zig's list of libSystem's symbols, without the architectures that LLVM's linker does not know. */
function writeStubs(zig, scratch) {
  const text = readFileSync(join(zig, "lib/libc/darwin/libSystem.tbd"), "utf8");
  const file = join(scratch, "libSystem.tbd");
  writeFileSync(file, text.replaceAll(/,? *arm64e\.x1-mac(os|catalyst)/g, ""));
  return file;
}

function filesOf(folder, pattern) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => join(folder, name));
}

function isFresh(file, sources) {
  if (!existsSync(file)) return false;
  const newest = Math.max(...[...sources, fileURLToPath(import.meta.url)].map((source) => statSync(source).mtimeMs));
  return statSync(file).mtimeMs > newest;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const missing = whyNoRig() ?? (findZig() === undefined ? "needs zig: pip install ziglang" : undefined);
  if (missing !== undefined) {
    process.stderr.write(`${missing}\n`);
    process.exit(1);
  }
  const built = [...(buildRig() ? ["rig"] : []), ...buildModules()];
  process.stdout.write(`${built.length === 0 ? "nothing was stale" : `built ${built.join(", ")}`}\n`);
}
