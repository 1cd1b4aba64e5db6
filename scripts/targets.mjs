// The one table of the binaries that are built for other systems than the one that builds.

import { homedir } from "node:os";
import { join } from "node:path";

/** By the name that the loader looks for. */
export const CROSS_TARGETS = {
  "darwin-arm64": { triple: "aarch64-apple-darwin", library: "libproc_safe_addon.dylib" },
  "darwin-x64": { triple: "x86_64-apple-darwin", library: "libproc_safe_addon.dylib" },
  "win32-x64": { triple: "x86_64-pc-windows-gnu", library: "proc_safe_addon.dll" },
};

/** The oldest macOS that the binaries run on. */
export const MINIMUM_MACOS = "11.0";

/** Outside the checkout, so that a fresh one does not build the standard library again. */
export const CACHE = process.env.PROC_SAFE_BUILD_CACHE ?? join(homedir(), ".cache/proc-safe");

/** The C compiler for Windows. */
export const MINGW = "/usr/bin/x86_64-w64-mingw32-gcc";
