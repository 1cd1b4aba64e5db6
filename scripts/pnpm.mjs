// Runs the package manager, also where it is not installed.

import { spawnSync } from "node:child_process";
import { run } from "./run.mjs";

/** Not in package.json: this pnpm would want a lock entry for itself that no registry has. */
export const PNPM = "12.21.0";

/** Installs what the lock file says. Everything it prints goes to standard error. */
export function installWith(words) {
  const all = ["install", "--frozen-lockfile", ...words];
  const stdio = ["inherit", 2, 2];
  const shell = process.platform === "win32";
  const { stdout } = spawnSync("pnpm", ["--version"], { encoding: "utf8", shell });
  if (stdout?.trim() === PNPM) run("pnpm", all, { stdio, shell });
  else run("npx", ["-y", `pnpm@${PNPM}`, ...all], { stdio, shell });
}
