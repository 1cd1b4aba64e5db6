// Loading: PROC_SAFE_NATIVE, nativeStatus(), and what a missing or wrong binary becomes.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import { nativeStatus } from "proc-safe/native";
import { explainLoadFailure } from "../dist/load-failure.js";
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
  expect(rest).toEqual([false, { code: "helper-unavailable", reason: "switched-off" }]);
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
  const named = { pid: 7, syscall: "openat", errno: "EMFILE" };
  if (process.platform !== "win32") expect(detailsOf({ ...common, syscall: "openat", errno: 24 })).toEqual(named);
  // 5 is EIO, and on Windows ERROR_ACCESS_DENIED.
  expect(detailsOf({ ...common, syscall: "OpenProcess" })).toEqual({ pid: 7, syscall: "OpenProcess" });
});

/** A copy of the package whose binary is something else. */
function withBinary(change: (file: string) => void): string {
  const home = mkdtempSync(join(stagedPackage(), "copy-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  for (const part of ["dist", "prebuilds", "package.json"]) cpSync(join(ROOT, part), join(home, part), { recursive: true });
  for (const name of readdirSync(join(home, "prebuilds"))) {
    if (name === NATIVE.slice(10)) change(join(home, "prebuilds", name));
    else rmSync(join(home, "prebuilds", name)); // of other systems
  }
  return join(home, "dist/index.js");
}

/** A path as code that imports it: a drive's letter would be a scheme. */
function importable(path: string): string {
  return JSON.stringify(pathToFileURL(path).href);
}

const NATIVE = "prebuilds/" + nativeStatus().target + ".node";

/** The package's own binary with other bytes at a place. */
function patched(at: number, bytes: readonly number[]): (file: string) => void {
  return (file) => {
    const binary = readFileSync(join(ROOT, NATIVE));
    binary.set(bytes, at);
    writeFileSync(file, binary);
  };
}

for (const [what, reason, change] of [
  ["missing", "binary-missing", (file: string) => rmSync(file)],
  ["folder for a", "binary-corrupt", (file: string) => { rmSync(file); mkdirSync(file); }],
  ["empty", "binary-corrupt", (file: string) => writeFileSync(file, "")],
  ["textual", "binary-corrupt", (file: string) => writeFileSync(file, "not a binary\n".repeat(50))],
  ["Linux's IA-64", "wrong-architecture", patched(0, [0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 50, 0])],
  ["macOS's PowerPC", "wrong-architecture", patched(0, [0xcf, 0xfa, 0xed, 0xfe, 0x12, 0, 0, 1])],
  ["damaged", "binary-unusable", patched(64, Array.from({ length: 4_000 }, () => 0xff))],
] as const) {
  test(`a ${what} binary is helper-unavailable, and require fails at import`, () => {
    const entry = withBinary(change);
    const ask = `
      const other = await import(${importable(entry)});
      let thrown;
      try { other.listProcesses(); } catch (error) { thrown = [error.code, error.details.reason, error.cause instanceof Error]; }
      const { state, error, path } = other.nativeStatus();
      report([state, error.reason, path, other.isSupported(), thrown]);
    `;
    const path = join(entry, "../..", NATIVE);
    expect(scriptValue(ask)).toEqual(["unavailable", reason, path, false, ["helper-unavailable", reason, true]]);
    const required = `import(${importable(entry)}).then(() => report("loaded"), (error) => report([error.name, error.code]));`;
    const run = runScript(required.replace("import(", "process.env.PROC_SAFE_NATIVE = 'require'; import("));
    expect(run.value).toEqual(["ProcSafeError", "helper-unavailable"]);
  });
}

test("a binary of another version is refused", () => {
  const entry = withBinary(() => {});
  writeFileSync(join(entry, "../../package.json"), JSON.stringify({ type: "module", version: "9.9.9" }));
  const script = `
    const other = await import(${importable(entry)});
    report(other.nativeStatus());
  `;
  const error = { code: "helper-unavailable", reason: "version-mismatch" };
  expect(scriptValue(script)).toMatchObject({ state: "unavailable", error });
});

test("a system that the package has no binary for", () => {
  const entry = withBinary((file) => renameSync(file, join(file, "../plan9-mips.node")));
  const script = `report((await import(${importable(entry)})).nativeStatus().error);`;
  const error = scriptValue<{ reason: string; message: string }>(script);
  expect(error.reason).toBe("unsupported-target");
  expect(error.message).toContain("plan9-mips");
});

test("what the loaders of Linux say of its C libraries", () => {
  const explain = (message: string): string =>
    explainLoadFailure(join(ROOT, NATIVE), nativeStatus().target, { code: "ERR_DLOPEN_FAILED", message }).reason;
  expect(explain("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by x.node)")).toBe("libc-too-old");
  expect(explain("libc.musl-x86_64.so.1: cannot open shared object file: No such file or directory")).toBe("wrong-libc");
  expect(explain("Error relocating x.node: gnu_get_libc_version: symbol not found")).toBe("wrong-libc");
  expect(explain("x.node: cannot allocate memory in static TLS block")).toBe("binary-unusable");
});

const PERMISSION = Number(process.versions.node.split(".")[0]) < 22 ? "--experimental-permission" : "--permission";

for (const nodeWords of [["--no-addons"], [PERMISSION, "--allow-fs-read=*"]]) {
  test(`${nodeWords.at(-1)} without addons is said to be so`, () => {
    const entry = join(stagedPackage(), "node_modules/proc-safe/dist/index.js");
    const script = join(stagedPackage(), "addons.mjs");
    writeFileSync(script, `const { nativeStatus } = await import(${importable(entry)});
      process.stdout.write(JSON.stringify(nativeStatus().error));`);
    const words = ["--no-warnings", ...nodeWords];
    const { stdout, stderr } = spawnSync(process.execPath, [...words, script], {
      encoding: "utf8",
      env: { ...process.env, PROC_SAFE_NATIVE: "auto" },
    });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toMatchObject({ code: "helper-unavailable", reason: "addons-disabled" });
  });
}

test("a bundle names where its binary is", () => {
  const entry = withBinary((file) => rmSync(file));
  const script = `
    import { copyFileSync } from "node:fs";
    import { pathToFileURL } from "node:url";
    const other = await import(${importable(entry)});
    const place = ${JSON.stringify(join(entry, "../bundled.node"))};
    const wrong = ["bundled.node", "", undefined, 7, new URL("https://example.org/x.node"), "/a\\0b"];
    const refused = wrong.map((path) => { try { other.setNativeBinding(path); } catch (error) { return error.code; } });
    other.setNativeBinding(place);
    const before = other.nativeStatus();
    copyFileSync(${JSON.stringify(join(ROOT, NATIVE))}, place);
    other.setNativeBinding(pathToFileURL(place));
    const rows = other.listProcesses({ pids: [process.pid] }).length;
    other.setNativeBinding(place);
    let late;
    try { other.setNativeBinding(place + "2"); } catch (error) { late = error.code; }
    report([refused, before.error.reason, before.path === place, rows, other.nativeStatus().path === place, late]);
  `;
  const no = "invalid-argument";
  expect(scriptValue(script)).toEqual([[no, no, no, no, no, no], "binary-missing", true, 1, true, no]);
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
