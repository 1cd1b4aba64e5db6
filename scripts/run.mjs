// Runs programs for the other scripts, and knows where the project is.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The project's root, with a trailing separator. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Runs a program to its end with our terminal. A failure ends this process with the program's exit
 * status, because every script here is a chain of such steps.
 */
export function run(command, words, options = {}) {
  const result = spawnSync(command, words, { cwd: ROOT, stdio: "inherit", ...options });
  if (result.error) fail(`cannot run ${command}: ${result.error.message}`);
  if (result.signal) fail(`${command} was ended by ${result.signal}`);
  if (result.status !== 0) process.exit(result.status ?? 1);
  return result;
}

export function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** The JavaScript file behind a program of a dev dependency. */
export function localProgram(path) {
  return fileURLToPath(new URL(`../node_modules/${path}`, import.meta.url));
}
