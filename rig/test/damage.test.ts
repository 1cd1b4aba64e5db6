// Damaged files: the loader refuses them or maps them, but neither crashes nor hangs.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { MODULES } from "../build.mjs";
import { rig, rigTest } from "./support/module.ts";

const LC_SEGMENT_64 = 0x19;
const LC_DYLD_INFO_ONLY = 0x80000022;
const [SEGMENT_HEADER, SECTION] = [72, 80];

/** Where the load commands of one kind are. */
function commandsOf(bytes: Buffer, kind: number): number[] {
  const found: number[] = [];
  for (let at = 32, left = bytes.readUInt32LE(16); left > 0; left--, at += bytes.readUInt32LE(at + 4)) {
    if (bytes.readUInt32LE(at) === kind) found.push(at);
  }
  return found;
}

/** Where the section of that name is described. */
function sectionOf(bytes: Buffer, name: string): number {
  for (const at of commandsOf(bytes, LC_SEGMENT_64)) {
    for (let index = 0; index < bytes.readUInt32LE(at + 64); index++) {
      const section = at + SEGMENT_HEADER + index * SECTION;
      if (bytes.toString("latin1", section, section + 16).replace(/\0.*$/s, "") === name) return section;
    }
  }
  throw new Error(`no section ${name}`);
}

/** What the rig says of the zig-linked module after an edit; `undefined` if it maps it. */
function refusalOf(edit: (bytes: Buffer) => void): string | undefined {
  const bytes = readFileSync(MODULES.zig);
  const folder = mkdtempSync(join(tmpdir(), "rig-"));
  edit(bytes);
  try {
    writeFileSync(join(folder, "edited.node"), bytes);
    rig.info(join(folder, "edited.node"));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

rigTest("an edit that damages nothing is accepted", () => {
  expect(refusalOf(() => undefined)).toBeUndefined();
});

rigTest("a rebase program that would never end is refused", () => {
  const refusal = refusalOf((bytes) => {
    const [command = 0] = commandsOf(bytes, LC_DYLD_INFO_ONLY);
    const many = [0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    const minusEight = [0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]; // so that it stays in place
    const program = Buffer.from([0x11, 0x22, 0x00, 0x80, ...many, ...minusEight]);
    program.copy(bytes, bytes.length - program.length);
    bytes.writeUInt32LE(bytes.length - program.length, command + 8);
    bytes.writeUInt32LE(program.length, command + 12);
  });
  expect(refusal).toMatch(/fixups in a row/);
});

rigTest("segments that overlap are refused", () => {
  const refusal = refusalOf((bytes) => {
    const [first = 0, second = 0] = commandsOf(bytes, LC_SEGMENT_64);
    bytes.copy(bytes, second + 24, first + 24, first + 32); // its address
  });
  expect(refusal).toMatch(/overlap/);
});

rigTest("an initialiser that is no code is refused", () => {
  const refusal = refusalOf((bytes) => bytes.writeUInt32LE(9, sectionOf(bytes, "__data") + 64));
  expect(refusal).toMatch(/no code/);
});

rigTest("an entry point that is no code is refused", () => {
  const refusal = refusalOf((bytes) => {
    for (const at of commandsOf(bytes, LC_SEGMENT_64)) bytes.writeUInt32LE(3, at + 60); // nothing is executable
    bytes.writeUInt32LE(0, sectionOf(bytes, "__mod_init_func") + 64);
  });
  expect(refusal).toMatch(/napi_register_module_v1 is no code/);
});

rigTest("files that are damaged at random are refused, or mapped, but crash nothing", () => {
  for (const file of Object.values(MODULES).filter((name) => existsSync(name))) {
    const folder = mkdtempSync(join(tmpdir(), "rig-"));
    const program = fileURLToPath(new URL("support/damage.mjs", import.meta.url));
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, [program, file, folder, "600"], { encoding: "utf8" });
    rmSync(folder, { recursive: true });
    expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: "" });
    const { refused, accepted } = JSON.parse(stdout) as Record<string, number>;
    expect(refused).toBeGreaterThan(100);
    expect(accepted).toBeGreaterThan(100);
  }
});
