// Builds what is stale: dist/ from TypeScript, prebuilds/ from Rust. `--native` builds only the
// latter. A second run does no work beyond looking.

import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { localProgram, ROOT, run } from "./run.mjs";

const TARGET_MODULE = join(ROOT, "dist/target.js");

export function buildTypeScript() {
  run(process.execPath, [localProgram("typescript/bin/tsc"), "-p", "tsconfig.json"]);
}

/** The addon for this machine, and the file name that the loader looks for. */
export async function buildNative() {
  run("cargo", ["build", "--release", "--locked", "--quiet", "-p", "proc-safe-addon"]);
  const { currentTarget } = await import(pathToFileURL(TARGET_MODULE).href);
  installBinary(join(ROOT, "target/release", libraryName()), join(ROOT, `prebuilds/${currentTarget()}.node`));
}

function libraryName() {
  if (process.platform === "win32") return "proc_safe_addon.dll";
  return process.platform === "darwin" ? "libproc_safe_addon.dylib" : "libproc_safe_addon.so";
}

/** Writing into a binary that a process has loaded crashes it; a rename does not. */
export function installBinary(from, to) {
  if (sameBytes(from, to)) {
    utimesSync(to, new Date(), new Date()); // it is as new as its sources
    return;
  }
  mkdirSync(join(ROOT, "prebuilds"), { recursive: true });
  const temporary = `${to}.${process.pid}`;
  copyFileSync(from, temporary);
  renameSync(temporary, to);
}

function sameBytes(from, to) {
  try {
    return readFileSync(from).equals(readFileSync(to));
  } catch (error) {
    if (error.code === "ENOENT") return false;
    throw error;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // The native build asks the TypeScript for the target's name.
  if (!process.argv.includes("--native") || !existsSync(TARGET_MODULE)) buildTypeScript();
  await buildNative();
}
