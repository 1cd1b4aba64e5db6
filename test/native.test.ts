// Loading: PROC_SAFE_NATIVE, nativeStatus(), and what a missing or wrong binary becomes.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import { nativeStatus } from "proc-safe/native";
import { explainLoadFailure } from "../dist/load-failure.js";
import { unwrap } from "../dist/native.js";
import { elfEnd, elfInterpreter } from "../dist/elf.js";
import { libraryOf, TARGETS } from "../dist/target.js";
import { TARGETS as BUILT } from "../scripts/targets.mjs";
import { nativeTest } from "./support/needs.ts";
import { runScript, scriptValue, stagedPackage } from "./support/node.ts";
import { ROOT } from "./support/paths.ts";

const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const STATUS = "report([nativeStatus(), isSupported(), attempt(() => listProcesses().length > 0)])";

test("auto: loaded on first use", () => {
  expect(nativeStatus()).toMatchObject({ state: "ready", version: VERSION });
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

/** What a download leaves that broke off. */
function cutTo(length: (size: number) => number): (file: string) => void {
  return (file) => truncateSync(file, Math.floor(length(statSync(file).size)));
}

for (const [what, reason, change] of [
  ["missing", "binary-missing", (file: string) => rmSync(file)],
  ["folder for a", "binary-corrupt", (file: string) => { rmSync(file); mkdirSync(file); }],
  ["empty", "binary-corrupt", (file: string) => writeFileSync(file, "")],
  ["textual", "binary-corrupt", (file: string) => writeFileSync(file, "not a binary\n".repeat(50))],
  ["Linux's IA-64", "wrong-architecture", patched(0, [0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 50, 0])],
  ["macOS's PowerPC", "wrong-architecture", patched(0, [0xcf, 0xfa, 0xed, 0xfe, 0x12, 0, 0, 1])],
  ["half a", "binary-corrupt", cutTo((size) => size / 2)],
  ["all but one byte of a", "binary-corrupt", cutTo((size) => size - 1)],
  ["header of a", "binary-corrupt", cutTo(() => 64)],
  ["zeroed half of a", "binary-corrupt", (file: string) => { const { size } = statSync(file); truncateSync(file, size / 2 | 0); truncateSync(file, size); }],
  ["zeroed last page of a", "binary-corrupt", (file: string) => { const { size } = statSync(file); truncateSync(file, size - 4096); truncateSync(file, size); }],
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

for (const [what, ours, theirs] of [
  ["release", `VERSION = "${VERSION}"`, `VERSION = "${VERSION}1"`],
  ["contract", "const CONTRACT = ", "const CONTRACT = 1"],
] as const) {
  test(`a binary of another ${what} is refused`, () => {
    const entry = withBinary(() => {});
    const loader = join(entry, "../native.js");
    const text = readFileSync(loader, "utf8");
    expect(text).toContain(ours);
    writeFileSync(loader, text.replace(ours, theirs));
    const status = scriptValue(`report((await import(${importable(entry)})).nativeStatus());`);
    const error = { code: "helper-unavailable", reason: "version-mismatch" };
    expect(status).toMatchObject({ state: "unavailable", error });
  });
}

test("the loader looks for what is built", () => {
  expect(TARGETS).toEqual(Object.keys(BUILT).sort());
});

/** How the package stands in a Node that `command` runs, in `cwd`. */
function statusUnder(command: readonly string[], cwd: string): unknown {
  const script = `const { nativeStatus } = await import(${importable(join(ROOT, "dist/index.js"))}); process.stdout.write(JSON.stringify(nativeStatus()));`;
  const [program = "", ...words] = [...command, "--input-type=module", "-e", script];
  const { stdout, stderr, error } = spawnSync(program, words, { cwd, encoding: "utf8", env: { ...process.env, PROC_SAFE_NATIVE: "auto" } });
  if (error) throw error;
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

nativeTest("the C library is that of the dynamic linker which the running program names", ["linux"], () => {
  const node = readFileSync(process.execPath);
  const linker = elfInterpreter((offset, length) => node.subarray(offset, offset + length));
  const place = node.indexOf(`${linker}\0`, 0, "latin1");
  const base = `linux-${process.arch}`;
  for (const [name, target, reason] of [
    ["ld-musl-x.so.1", `${base}-musl`, existsSync(join(ROOT, `prebuilds/${base}-musl.node`)) ? "wrong-libc" : "binary-missing"],
    ["ld-other.so.1", base, "unsupported-target"],
  ] as const) {
    const cwd = mkdtempSync(join(stagedPackage(), "linker-"));
    symlinkSync(linker, join(cwd, name)); // the kernel takes a relative name
    node.write(`${name}\0`, place, "latin1");
    writeFileSync(join(cwd, "node"), node, { mode: 0o755 });
    expect(statusUnder([join(cwd, "node")], cwd)).toMatchObject({ target, state: "unavailable", error: { reason } });
    rmSync(cwd, { recursive: true });
  }
  expect(statusUnder([linker, process.execPath], ROOT)).toMatchObject({ target: `${base}-gnu`, state: "ready" });
});

/** Addons that C made: what is wrong with each is for the system's own loader to find. */
function cAddon(name: string, source: string, words: readonly string[] = []): string {
  const file = join(stagedPackage(), `${name}.node`);
  const options = ["-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-x", "none", ...words, "-o", file];
  expect(spawnSync("cc", options, { input: source, encoding: "utf8" }).stderr).toBe("");
  return file;
}

const REGISTER = "void *napi_register_module_v1(void *env, void *exports) { (void)env; return exports; }";

/** An addon that needs a symbol from a C library of this name, and of this version if there is one. */
function addonOf(library: string, version?: string): string {
  const place = mkdtempSync(join(stagedPackage(), "library-"));
  writeFileSync(join(place, "versions"), `${version ?? "ANY"} { global: wanted; };`);
  const versions = version === undefined ? [] : [`-Wl,--version-script=${join(place, "versions")}`];
  cpSync(cAddon("library", "void wanted(void) {}", [`-Wl,-soname,${library}`, ...versions]), join(place, library));
  return cAddon(`for-${library}`, `void wanted(void); ${REGISTER} void *use = wanted;`, [join(place, library)]);
}

nativeTest("what the dynamic linker refuses, and what is no binding of ours", ["linux"], () => {
  for (const [file, reason] of [
    [addonOf("libc.so.6", "GLIBC_9.99"), "libc-too-old"],
    [addonOf("libc.musl-x86_64.so.1"), "wrong-libc"],
    [addonOf("libc.so"), "wrong-libc"],
    [addonOf("libelsewhere.so.7"), "binary-unusable"],
    [cAddon("no-addon", "int nothing;"), "binary-unusable"],
    [cAddon("another-addon", REGISTER), "version-mismatch"],
  ] as const) {
    const script = `procSafe.setNativeBinding(${JSON.stringify(file)}); report(nativeStatus());`;
    expect(scriptValue(script), file).toMatchObject({ state: "unavailable", path: file, error: { reason } });
  }
});

test("binaries of other systems name their processors", () => {
  const file = join(stagedPackage(), "other.node");
  const explain = (target: string, bytes: Buffer): string => {
    writeFileSync(file, bytes);
    return explainLoadFailure(file, target, new Error("refused")).reason;
  };
  const windows = (machine: number): Buffer => {
    const image = Buffer.alloc(256);
    image.write("MZ");
    image.writeUInt32LE(128, 60); // e_lfanew
    image.write("PE\0\0", 128);
    image.writeUInt16LE(machine, 132);
    return image;
  };
  expect(explain("win32-x64", windows(0x8664))).toBe("binary-unusable"); // nothing is wrong with it but the cause
  expect(explain("win32-x64", windows(0xaa64))).toBe("wrong-architecture");
  expect(explain("win32-x64", windows(0x8664).subarray(0, 133))).toBe("binary-corrupt");
  const macho = Buffer.alloc(256);
  macho.writeUInt32LE(0xfeedfacf, 0);
  macho.writeUInt32LE(0x0100000c, 4);
  expect(explain("darwin-arm64", macho)).toBe("binary-unusable");
  expect(explain("darwin-x64", macho)).toBe("wrong-architecture");
});

test("what other loaders say of the C library", () => {
  const explain = (message: string): string =>
    explainLoadFailure(join(ROOT, NATIVE), nativeStatus().target, { code: "ERR_DLOPEN_FAILED", message }).reason;
  expect(explain("Error relocating x.node: gnu_get_libc_version: symbol not found")).toBe("wrong-libc");
  expect(explain("x.node: cannot allocate memory in static TLS block")).toBe("binary-unusable");
});

const PERMISSION = Number(process.versions.node.split(".")[0]) < 22 ? "--experimental-permission" : "--permission";

/** The status in a Node with these words, that can read nothing but the staged package if they say so. */
function statusWith(nodeWords: readonly string[]): unknown {
  const entry = join(stagedPackage(), "node_modules/proc-safe/dist/index.js");
  const script = join(stagedPackage(), "addons.mjs");
  writeFileSync(script, `const { nativeStatus } = await import(${importable(entry)});
    process.stdout.write(JSON.stringify(nativeStatus()));`);
  const { stdout, stderr } = spawnSync(process.execPath, ["--no-warnings", ...nodeWords, script], {
    encoding: "utf8",
    env: { ...process.env, PROC_SAFE_NATIVE: "auto" },
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

for (const nodeWords of [["--no-addons"], [PERMISSION, "--allow-fs-read=*"]]) {
  test(`${nodeWords.at(-1)} without addons is said to be so`, () => {
    expect(statusWith(nodeWords)).toMatchObject({ error: { code: "helper-unavailable", reason: "addons-disabled" } });
  });
}

test("addons are enough, and to read the package: no other program is read", () => {
  const nodeWords = [PERMISSION, "--allow-addons", `--allow-fs-read=${stagedPackage()}`];
  expect(statusWith(nodeWords)).toMatchObject({ state: "ready", target: nativeStatus().target });
});

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

test("dynamic linkers have names", () => {
  for (const path of ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/usr/lib/x86_64-linux-gnu/ld-2.31.so", "/nix/store/x-musl-free-glibc/lib/ld-linux-x86-64.so.2"]) {
    expect(libraryOf(path), path).toBe("gnu");
  }
  for (const path of ["/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1", "/usr/lib/libc.so"]) expect(libraryOf(path), path).toBe("musl");
  for (const path of ["", "/system/bin/linker64", "/usr/bin/node", "/opt/ld-musl-/node"]) expect(libraryOf(path), path).toBeUndefined();
});

test("a file is whole to the end of what is loaded and of its tables", () => {
  const end = (change: (program: Buffer) => void): number => {
    const program = elfWithInterpreter("/lib/ld-musl-x86_64.so.1");
    change(program);
    return elfEnd((offset, length) => program.subarray(offset, offset + length));
  };
  expect(end((program) => program.fill(0))).toBe(0);
  expect(end(() => {})).toBe(64 + 56);
  expect(end((program) => program.writeUInt32LE(1, 64))).toBe(200 + 25); // PT_LOAD
  expect(end((program) => program.writeUInt16LE(100, 56))).toBe(64 + 100 * 56);
  const sections = (program: Buffer): void => {
    program.writeBigUInt64LE(5_000n, 40);
    program.writeUInt16LE(64, 58);
    program.writeUInt16LE(3, 60);
  };
  expect(end(sections)).toBe(5_000 + 3 * 64);
});

test("a file that --permission does not let be read is out of reach", () => {
  const nodeWords = [PERMISSION, "--allow-addons", `--allow-fs-read=${stagedPackage()}`, "--no-warnings"];
  const script = `procSafe.setNativeBinding(${JSON.stringify(join(ROOT, NATIVE))}); report(nativeStatus().error);`;
  expect(scriptValue(script, { nodeWords })).toMatchObject({ reason: "binary-missing" });
});

nativeTest("a failure of the moment is said to be one, and is over with it", ["linux"], () => {
  const script = `
    import { closeSync, openSync } from "node:fs";
    const files = [];
    try { for (;;) files.push(openSync("/dev/null")); } catch (error) { if (error.code !== "EMFILE") throw error; }
    const first = nativeStatus();
    for (const file of files) closeSync(file);
    report([first.state, first.target, first.error.reason, nativeStatus().state]);
  `;
  const launcher = ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh"];
  expect(scriptValue(script, { launcher })).toEqual(["unavailable", nativeStatus().target, "binary-unusable", "ready"]);
});

nativeTest("the package is installed anew under a running program: Workers of its release go on, of the next are refused", ["linux"], () => {
  const entry = withBinary(() => {});
  const script = `
    import { copyFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
    import { Worker } from "node:worker_threads";
    const other = await import(${importable(entry)});
    const replace = (file, change) => { change(file + ".new"); renameSync(file + ".new", file); };
    const code = "import(" + ${JSON.stringify(importable(entry))} + ").then(async ({ nativeStatus }) => (await import('node:worker_threads')).parentPort.postMessage(nativeStatus()))";
    const inWorker = async () => {
      const status = await new Promise((resolve) => new Worker(code, { eval: true }).once("message", resolve));
      return [status.state, status.error?.reason ?? null];
    };
    const { path } = other.nativeStatus();
    replace(path, (file) => copyFileSync(path, file));
    const same = await inWorker();
    replace(${JSON.stringify(join(entry, "../native.js"))}, (file) => writeFileSync(file, readFileSync(${JSON.stringify(join(entry, "../native.js"))}, "utf8").replace('VERSION = "', 'VERSION = "9')));
    report([same, await inWorker(), other.listProcesses({ pids: [process.pid] }).length]);
  `;
  expect(scriptValue(script)).toEqual([["ready", null], ["unavailable", "version-mismatch"], 1]);
});

nativeTest("a file system without exec", ["linux", "root"], () => {
  const place = mkdtempSync(join(stagedPackage(), "mount-"));
  const file = join(place, "x.node");
  const shell = `mount -t tmpfs -o noexec none '${place}' && cp '${join(ROOT, NATIVE)}' '${file}' && exec "$@"`;
  const script = `procSafe.setNativeBinding(${JSON.stringify(file)}); report(nativeStatus());`;
  const status = scriptValue(script, { launcher: ["unshare", "--mount", "sh", "-c", shell, "sh"] });
  expect(status).toMatchObject({ path: file, error: { reason: "binary-unusable" } });
});

test("a program's headers may end anywhere", () => {
  const program = elfWithInterpreter("/lib/ld-musl-x86_64.so.1");
  expect(elfInterpreter((offset, length) => program.subarray(offset, offset + length))).toBe("/lib/ld-musl-x86_64.so.1");
  for (let cut = 0; cut < 120; cut++) {
    const short = program.subarray(0, cut);
    expect(elfInterpreter((offset, length) => short.subarray(offset, offset + length))).toBe("");
  }
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
