// Loading: PROC_SAFE_NATIVE, nativeStatus(), and what a missing or wrong binary becomes.

import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { nativeStatus } from "proc-safe/native";
import { unwrap } from "../dist/native.js";
import { elfInterpreter } from "../dist/target.js";
import { nativeTest } from "./support/needs.ts";
import { runScript, scriptValue, stagedPackage } from "./support/node.ts";
import { ROOT } from "./support/paths.ts";

const STATUS = "report([nativeStatus(), isSupported(), attempt(() => listProcesses().length > 0)])";

test("auto: loaded on first use", () => {
  expect(nativeStatus()).toMatchObject({ state: "ready", version: "0.1.0" });
  expect(Object.isFrozen(nativeStatus())).toBe(true);
  for (const mode of ["auto", "require"]) {
    const [status, supported, census] = scriptValue<[object, boolean, object]>(STATUS, {
      env: { PROC_SAFE_NATIVE: mode },
    });
    expect(status).toMatchObject({ mode, state: "ready", target: nativeStatus().target });
    expect([supported, census]).toEqual([true, { value: true }]);
  }
});

test("off: never loaded", () => {
  const [status, ...rest] = scriptValue<object[]>(STATUS, { env: { PROC_SAFE_NATIVE: "off" } });
  expect(status).toMatchObject({ mode: "off", state: "disabled", error: { code: "helper-unavailable" } });
  expect(rest).toEqual([false, { code: "helper-unavailable" }]);
});

test("another value: said at the first call", () => {
  const [status, ...rest] = scriptValue<object[]>(STATUS, { env: { PROC_SAFE_NATIVE: "yes\u001b[2J" } });
  expect(status).toMatchObject({ mode: "invalid", state: "unavailable", error: { code: "invalid-argument" } });
  expect(JSON.stringify(status)).not.toContain("\\u001b");
  expect(rest).toEqual([false, { code: "invalid-argument" }]);
});

test("a failure has an errno where its system has one, and none where it has not", () => {
  const detailsOf = (failure: Parameters<typeof unwrap>[0]): unknown => {
    try {
      return unwrap(failure);
    } catch (error) {
      return (error as { details?: unknown }).details;
    }
  };
  const common = { code: "operation-failed", message: "a call failed", pid: 7 } as const;
  expect(detailsOf({ ...common, syscall: "openat", errno: 24 })).toEqual({ pid: 7, syscall: "openat", errno: "EMFILE" });
  // 5 is EIO, and on Windows ERROR_ACCESS_DENIED.
  expect(detailsOf({ ...common, syscall: "OpenProcess" })).toEqual({ pid: 7, syscall: "OpenProcess" });
});

/** A copy of the package whose binary is something else. */
function withBinary(change: (file: string) => void): string {
  const home = mkdtempSync(join(stagedPackage(), "copy-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  for (const part of ["dist", "prebuilds", "package.json"]) cpSync(join(ROOT, part), join(home, part), { recursive: true });
  for (const name of readdirSync(join(home, "prebuilds"))) change(join(home, "prebuilds", name));
  return join(home, "dist/index.js");
}

for (const [what, change] of [
  ["missing", (file: string) => rmSync(file)],
  ["empty", (file: string) => writeFileSync(file, "")],
  ["no binary", (file: string) => writeFileSync(file, "not a binary")],
] as const) {
  test(`a ${what} binary is helper-unavailable, and require fails at import`, () => {
    const entry = JSON.stringify(withBinary(change));
    const ask = `
      const other = await import(${entry});
      let thrown;
      try { other.listProcesses(); } catch (error) { thrown = [error.code, error.cause instanceof Error]; }
      report([other.nativeStatus().state, other.isSupported(), thrown]);
    `;
    expect(scriptValue(ask)).toEqual(["unavailable", false, ["helper-unavailable", true]]);
    const required = `import(${entry}).then(() => report("loaded"), (error) => report([error.name, error.code]));`;
    const run = runScript(required.replace("import(", "process.env.PROC_SAFE_NATIVE = 'require'; import("));
    expect(run.value).toEqual(["ProcSafeError", "helper-unavailable"]);
  });
}

test("a binary of another version is refused", () => {
  const entry = withBinary(() => {});
  writeFileSync(join(entry, "../../package.json"), JSON.stringify({ type: "module", version: "9.9.9" }));
  const script = `
    const other = await import(${JSON.stringify(entry)});
    report(other.nativeStatus());
  `;
  expect(scriptValue(script)).toMatchObject({ state: "unavailable", error: { code: "helper-unavailable" } });
});

test("--no-addons is helper-unavailable", () => {
  const census = "report([nativeStatus().state, attempt(() => listProcesses())])";
  expect(scriptValue(census, { nodeWords: ["--no-addons"] })).toEqual(["unavailable", { code: "helper-unavailable" }]);
});

test("CommonJS can require it", () => {
  const script = `
    import { createRequire } from "node:module";
    const require = createRequire(process.cwd() + "/x.cjs");
    report(["", "/inspect", "/identity", "/errors", "/native", "/package.json"].map((path) => Object.keys(require("proc-safe" + path)).length > 0));
  `;
  const { value } = runScript(script);
  expect(value).toEqual([true, true, true, true, true, true]);
});

nativeTest("the interpreter of the running program names its C library", ["linux"], () => {
  const program = elfWithInterpreter("/lib/ld-musl-x86_64.so.1");
  const read = (offset: number, length: number): Buffer => program.subarray(offset, offset + length);
  expect(elfInterpreter(read)).toBe("/lib/ld-musl-x86_64.so.1");
  for (let cut = 0; cut < 120; cut++) {
    const short = program.subarray(0, cut);
    expect(elfInterpreter((offset, length) => short.subarray(offset, offset + length))).toBe("");
  }
  expect(nativeStatus().target).toBe(`linux-${process.arch}-gnu`);
});

function elfWithInterpreter(path: string): Buffer {
  const program = Buffer.alloc(256);
  program.write("\x7fELF\x02\x01\x01", "latin1");
  program.writeBigUInt64LE(64n, 32); // e_phoff
  program.writeUInt16LE(56, 54); // e_phentsize
  program.writeUInt16LE(1, 56); // e_phnum
  program.writeUInt32LE(3, 64); // PT_INTERP
  program.writeBigUInt64LE(200n, 64 + 8); // p_offset
  program.writeBigUInt64LE(BigInt(path.length + 1), 64 + 32); // p_filesz
  program.write(`${path}\0`, 200, "latin1");
  return program;
}
