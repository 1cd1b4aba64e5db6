// An agent host that was written for @openclaw/proc-safe, with tests of its own: this package takes that name by an
// alias, and nothing of the host changes. `host/` is its source.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { nativeTest } from "../support/needs.ts";
import { ROOT } from "../support/paths.ts";

const home = mkdtempSync(join(realpathSync(tmpdir()), "proc-safe-host-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
cpSync(join(ROOT, "test/consumer/host"), home, { recursive: true });

/** Exactly what a registry would give, under the name that the host asks for. */
const installed = join(home, "node_modules/@openclaw/proc-safe");
mkdirSync(dirname(installed), { recursive: true });
const packed = spawnSync("npm", ["pack", ROOT, "--ignore-scripts", "--silent"], { cwd: home, encoding: "utf8" });
const unpacked = spawnSync("tar", ["-xzf", packed.stdout.trim()], { cwd: home });
if (packed.status === 0 && unpacked.status === 0) renameSync(join(home, "package"), installed);
// Tools of the host's own.
for (const name of ["vitest", "@types"]) symlinkSync(join(ROOT, "node_modules", name), join(home, "node_modules", name));

function node(...words: readonly string[]): [status: number | null, output: string] {
  const { PROC_SAFE_NATIVE: _, VITEST: __, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: home, env, encoding: "utf8" });
  return [status, stdout + stderr];
}

const tool = (path: string): string => join(ROOT, "node_modules", path);

test("the host's sources and tests type-check", () => {
  expect(node(tool("typescript/bin/tsc"), "-p", ".")).toEqual([0, ""]);
});

nativeTest("the host's own tests pass", ["linux"], () => {
  const [status, output] = node(tool("vitest/vitest.mjs"), "run", "--root", ".", "--reporter", "json");
  expect(status, output).toBe(0);
  const { numTotalTests, numPassedTests } = JSON.parse(output.slice(output.indexOf("{"))) as Record<string, number>;
  expect([numPassedTests, numPassedTests! > 20]).toEqual([numTotalTests, true]);
});

test("each subpath has the names of the contract, and no other, for import and for require", () => {
  const names = {
    inspect: ["listProcesses", "readProcessCommand"],
    identity: ["compareIdentities", "inspectIdentity", "isSupported", "readBootIdentity", "readProcessAncestry", "readProcessIdentity"],
    errors: ["ProcSafeError"],
    native: ["nativeStatus", "setNativeBinding"],
    tree: ["buildForest", "descendantsOf", "findTree", "membersOfGroup", "membersOfSession"],
  };
  const script = `
    import { createRequire } from "node:module";
    const require = createRequire(import.meta.url);
    const keys = {};
    for (const path of ${JSON.stringify(["", ...Object.keys(names).map((name) => `/${name}`)])}) {
      const imported = await import("@openclaw/proc-safe" + path);
      const required = require("@openclaw/proc-safe" + path);
      for (const key in imported) if (imported[key] !== required[key]) throw new Error(path + " " + key);
      keys[path.slice(1)] = Object.keys(imported).sort();
    }
    process.stdout.write(JSON.stringify([require("@openclaw/proc-safe/package.json").name, keys]));
  `;
  const [status, output] = node("--no-warnings", "--input-type=module", "-e", script);
  expect(status, output).toBe(0);
  expect(JSON.parse(output)).toEqual(["proc-safe", { "": Object.values(names).flat().sort(), ...names }]);
});
