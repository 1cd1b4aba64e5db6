// The one table of the binaries that the package has. The loader's names, the build, the checks, the workflow and the
// README are tested against it.

import { homedir } from "node:os";
import { join } from "node:path";

/**
 * By the name that the loader looks for: what Rust calls it and makes for it, the oldest systems that it runs on, how
 * it is executed on the machine that builds all of them, and the hosted runner that has such a system.
 */
export const TARGETS = {
  "linux-x64-gnu": linux("x86_64-unknown-linux-gnu", { glibc: "2.17" }, "native", "ubuntu-24.04"),
  "linux-arm64-gnu": linux("aarch64-unknown-linux-gnu", { glibc: "2.17" }, "qemu", "ubuntu-24.04-arm"),
  "linux-x64-musl": linux("x86_64-unknown-linux-musl", { musl: "1.2.3" }, "musl"),
  "linux-arm64-musl": linux("aarch64-unknown-linux-musl", { musl: "1.2.3" }, "qemu-musl"),
  "darwin-x64": darwin("x86_64-apple-darwin", "rig", "macos-15-intel"),
  "darwin-arm64": darwin("aarch64-apple-darwin", undefined, "macos-15"),
  "win32-x64": {
    triple: "x86_64-pc-windows-gnu",
    library: "proc_safe_addon.dll",
    oldest: { Windows: "10" },
    execution: "wine",
    runner: "windows-2025",
  },
};

/** The ways of executing a binary on Linux for x64. */
export const EXECUTIONS = {
  native: "by Node 20, 22, 24 and 26",
  qemu: "by Node for arm64, in qemu",
  musl: "by Node for musl",
  "qemu-musl": "by Node for arm64 and musl, in qemu",
  rig: "by Node, over a [simulated kernel](docs/darwin.md)",
  wine: "by node.exe, in [wine](docs/windows.md)",
};

/** The lines of the README's table. */
export function platformTable() {
  const rows = Object.entries(TARGETS).map(([name, { oldest, execution, runner }]) => {
    const systems = Object.entries(oldest).map(([system, version]) => `${system} ≥ ${version}`).join(", ");
    return [`\`${name}\``, systems, EXECUTIONS[execution] ?? "built and looked at only", runner ?? "-"];
  });
  const head = ["binary", "runs on", "executed on every change", "hosted runner"];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
}

/** Outside the checkout, so that a fresh one does not build the standard library again. */
export const CACHE = process.env.PROC_SAFE_BUILD_CACHE ?? join(homedir(), ".cache/proc-safe");

/** The C compiler for Windows. */
export const MINGW = "/usr/bin/x86_64-w64-mingw32-gcc";

function linux(triple, libc, execution, runner) {
  return { triple, library: "libproc_safe_addon.so", oldest: { Linux: "4.18", ...libc }, execution, runner };
}

function darwin(triple, execution, runner) {
  return { triple, library: "libproc_safe_addon.dylib", oldest: { macOS: "11.0" }, execution, runner };
}
