// The first command of a newcomer says what is missing.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { nativeTest } from "./support/needs.ts";
import { ROOT } from "./support/paths.ts";

function devWith(programs: Readonly<Record<string, string>>): { status: number | null; stdout: string; stderr: string } {
  const path = mkdtempSync(join(tmpdir(), "proc-safe-path-"));
  try {
    for (const [name, program] of Object.entries(programs)) symlinkSync(program, join(path, name));
    const { status, stdout, stderr } = spawnSync("/bin/sh", [join(ROOT, "dev"), "list"], { encoding: "utf8", env: { PATH: path } });
    return { status, stdout, stderr };
  } finally {
    rmSync(path, { recursive: true });
  }
}

nativeTest("./dev names what is missing or too old", ["linux"], () => {
  const oneLine = (what: string): object => ({ status: 1, stdout: "", stderr: expect.stringMatching(new RegExp(`^proc-safe needs ${what}.*\\n$`)) as string });
  const node = { node: process.execPath };
  expect(devWith({})).toEqual(oneLine("Node.js"));
  expect(devWith(node)).toEqual(oneLine("Rust"));
  const cargo = join(ROOT, "test/fixtures/old-cargo");
  expect(devWith({ ...node, cargo })).toEqual(oneLine("Rust 1.88 or later; this is 1.70.0"));
});
