// Runs a script with the shipped package in another Node, also as another user or in a namespace.

import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { fixturePath, ROOT } from "./paths.ts";

export interface Run {
  /** What the script passed to `report`. */
  readonly value: unknown;
  readonly status: number | null;
  readonly stderr: string;
}

export interface RunOptions {
  /** Program and words that run Node; Node and the script follow. */
  readonly launcher?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeWords?: readonly string[];
}

let staged: string | undefined;

/** The package where every user can read it: the checkout may lie below a closed directory. */
export function stagedPackage(): string {
  if (staged === undefined) {
    staged = mkdtempSync(join(realpathSync(tmpdir()), "proc-safe-"));
    chmodSync(staged, 0o755);
    const home = join(staged, "node_modules/proc-safe");
    mkdirSync(home, { recursive: true });
    for (const part of ["dist", "prebuilds", "package.json"]) {
      cpSync(join(ROOT, part), join(home, part), { recursive: true });
    }
    const made = staged;
    afterAll(() => rmSync(made, { recursive: true, force: true }));
  }
  return staged;
}

const PRELUDE = `
  import * as procSafe from "proc-safe";
  import { writeSync } from "node:fs";
  const { listProcesses, readProcessIdentity, nativeStatus, isSupported } = procSafe;
  const report = (value) => writeSync(1, JSON.stringify(value ?? null));
  const attempt = (call) => {
    try { return { value: call() }; }
    catch (error) {
      if (!(error instanceof procSafe.ProcSafeError)) throw error;
      return { code: error.code, ...error.details };
    }
  };
`;

/** Runs a module that may use the package's exports, `attempt` and `report`. */
export function runScript(script: string, options: RunOptions = {}): Run {
  const cwd = stagedPackage();
  const node = [process.execPath, ...(options.nodeWords ?? []), "--input-type=module", "-e", PRELUDE + script];
  const [command = "", ...words] = [...(options.launcher ?? []), ...node];
  const { PROC_SAFE_NATIVE: _, ...env } = process.env;
  const result = spawnSync(command, words, {
    cwd,
    env: { ...env, ...options.env },
    encoding: "utf8",
    timeout: 100_000,
    maxBuffer: 1 << 28,
  });
  if (result.error) throw result.error;
  const value: unknown = result.stdout === "" ? undefined : JSON.parse(result.stdout);
  return { value, status: result.status, stderr: result.stderr };
}

/** Like `runScript`, for a script that must end well. */
export function scriptValue<T = unknown>(script: string, options: RunOptions = {}): T {
  const { value, status, stderr } = runScript(script, options);
  if (status !== 0) throw new Error(`the script ended with ${status}: ${stderr}`);
  return value as T;
}

/** A C fixture where every user can run it. */
export function publicFixture(name: string): string {
  const copy = join(stagedPackage(), name);
  cpSync(fixturePath(name), copy);
  return copy;
}

const SETPRIV = "setpriv --reuid 65534 --regid 65534 --clear-groups";

/**
 * A launcher for a namespace of its own, with a /proc of its own, where a root process sleeps as
 * $STRANGER and a process of nobody as $RELATIVE. Nothing outside is changed.
 */
export function inNamespace(procOptions: string, user: "root" | "nobody"): string[] {
  const mount = `mount -t proc ${procOptions === "" ? "" : `-o ${procOptions}`} proc /proc`;
  const shell = [
    "set -e",
    mount,
    "sleep 1000 & export STRANGER=$!",
    `${SETPRIV} sleep 1000 & export RELATIVE=$!`,
    `${user === "nobody" ? SETPRIV : "env"} "$@"`,
  ].join("\n");
  return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", shell, "sh"];
}
