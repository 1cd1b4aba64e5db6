// The table of targets against those who must agree with it, and what a binary is refused for: real ones, changed.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nativeStatus } from "proc-safe";
import { complaintsAbout } from "../scripts/artifact.mjs";
import { platformTable, TARGETS } from "../scripts/targets.mjs";
import { nativeTest } from "./support/needs.ts";
import type { Need } from "./support/needs.ts";
import { stagedPackage } from "./support/node.ts";
import { ROOT } from "./support/paths.ts";

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

test("the README's table", () => {
  expect(read("README.md")).toContain(`\n\n${platformTable().join("\n")}\n\n`);
});

test("the loader looks for names of the table", () => {
  expect(Object.keys(TARGETS)).toContain(nativeStatus().target);
  for (const [name, { oldest }] of Object.entries(TARGETS)) {
    const libc = "glibc" in oldest ? "-gnu" : "musl" in oldest ? "-musl" : "";
    expect(name).toMatch(new RegExp(`^(${"Linux" in oldest ? "linux" : "macOS" in oldest ? "darwin" : "win32"})-(x64|arm64)${libc}$`));
  }
});

test("the workflow runs on the runners of the table, and on no others", () => {
  const lines = read(".github/workflows/ci.yml").matchAll(/^ *(?:runs-on|os): *\[?([^\]#{$\n]+)/gm);
  const runners = [...lines].flatMap(([, names = ""]) => names.trim().split(/, */));
  const known = Object.values(TARGETS).flatMap(({ runner }) => runner ?? []);
  expect([...new Set(runners.filter(Boolean))].sort()).toEqual([...known].sort());
});

/** Each occurrence of a text, replaced by one of the same length. */
function replaced(bytes: Buffer, text: string, by: string): Buffer {
  expect(by).toHaveLength(text.length);
  expect(bytes.includes(text)).toBe(true);
  return Buffer.from(bytes.toString("latin1").replaceAll(text, by), "latin1");
}

/** The last section becomes a symbol table. */
function withSymbols(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  const last = Number(copy.readBigUInt64LE(40)) + copy.readUInt16LE(58) * (copy.readUInt16LE(60) - 1);
  copy.writeUInt32LE(2, last + 4);
  return copy;
}

const REFUSALS: readonly (readonly [Need, string, (bytes: Buffer) => Buffer, RegExp])[] = [
  ["linux-arm64-gnu", "too large", (bytes) => Buffer.concat([bytes, Buffer.alloc(500_000)]), /large/],
  ["linux-arm64-gnu", "for another processor", (bytes) => Buffer.concat([bytes.subarray(0, 18), Buffer.of(62, 0), bytes.subarray(20)]), /is for x64/],
  ["linux-arm64-gnu", "that has its symbols", withSymbols, /stripped/],
  ["linux-arm64-gnu", "with another export", (bytes) => replaced(bytes, "napi_register_module_v1", "napi_register_module_v2"), /exports napi_register_module_v2/],
  ["linux-arm64-gnu", "that names a cache", (bytes) => replaced(bytes, "/library/core/", "/.cargo/score/"), /names \.cargo/],
  ["linux-arm64-gnu", "for a newer glibc", (bytes) => replaced(bytes, "GLIBC_2.17", "GLIBC_2.18"), /needs GLIBC_2\.18/],
  ["linux-arm64-gnu", "with another library", (bytes) => replaced(bytes, "libpthread.so.0", "libreadline.so0"), /needs libreadline/],
  ["linux-arm64-musl", "for glibc", (bytes) => replaced(bytes, "libc.so\0", "libx.so\0"), /needs libx\.so/],
  ["darwin-x64", "with an unknown import", (bytes) => replaced(bytes, "_proc_pidinfo", "_proc_pidinfx"), /imports _proc_pidinfx/],
  ["darwin-x64", "with another library", (bytes) => replaced(bytes, "libSystem.B", "libSystem.C"), /libSystem\.C/],
  ["darwin-x64", "with another export", (bytes) => replaced(bytes, "_napi_register_module_v1", "_napi_register_module_v2"), /exports napi_register_module_v2/],
  ["win32-x64", "with an unknown import", (bytes) => replaced(bytes, "NtQuerySystemInformation", "NtQuerySystemInformatioX"), /imports ntdll\.dll NtQuerySystemInformatioX/],
  ["win32-x64", "with another export", (bytes) => replaced(bytes, "napi_register_module_v1", "napi_register_module_v2"), /exports napi_register_module_v2/],
];

for (const [name, what, change, complaint] of REFUSALS) {
  nativeTest(`a binary ${what} is refused for ${name}`, [name], () => {
    const bytes = readFileSync(join(ROOT, `prebuilds/${name}.node`));
    expect(complaintsAbout(name, bytes)).toEqual([]);
    expect(complaintsAbout(name, change(bytes))).toEqual([expect.stringMatching(complaint)]);
  });
}

nativeTest("a binary for glibc is none for musl", ["linux-arm64-gnu"], () => {
  const bytes = readFileSync(join(ROOT, "prebuilds/linux-arm64-gnu.node"));
  expect(complaintsAbout("linux-arm64-musl", bytes).join()).toMatch(/needs libc\.so\.6.*needs GLIBC_2\.17/);
});

nativeTest("what is built for quick tests is not fit to be shipped", ["linux", "x86_64"], () => {
  const bytes = readFileSync(join(ROOT, "target/release/libproc_safe_addon.so"));
  expect(complaintsAbout("linux-x64-gnu", bytes).join()).toMatch(/large.*registry\/src/);
});

/** The names of the checks that failed. */
function conformance(target: string, launcher: readonly string[] = []): string[] {
  const words = [join(ROOT, "scripts/conformance.mjs"), stagedPackage(), target];
  const [program = "", ...all] = [...launcher, process.execPath, ...words];
  const { stdout, stderr, status } = spawnSync(program, all, { encoding: "utf8" });
  expect(stderr).toBe("");
  const { checks, failed } = JSON.parse(stdout) as { checks: { name: string; error?: string }[]; failed: number };
  const failures = checks.filter(({ error }) => error !== undefined).map(({ name }) => name);
  expect([checks.length, failed, status]).toEqual([10, failures.length, failed === 0 ? 0 : 1]);
  return failures;
}

test("this machine's binary answers what all of them must, and would not for another system", () => {
  expect(conformance(nativeStatus().target)).toEqual([]);
  expect(conformance("plan9-mips")).toEqual(["the binary is the one for this system", "a Worker sees the same"]);
});

nativeTest("it answers so too as the first process of a container, which has no parent", ["linux", "root"], () => {
  expect(conformance(nativeStatus().target, ["unshare", "--pid", "--fork", "--mount-proc"])).toEqual([]);
});
