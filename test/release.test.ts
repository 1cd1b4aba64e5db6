// A release says one version everywhere, and is tried on every system before it is published.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { channelOf, complaintsAbout, prepare, releaseNotes } from "../scripts/release-notes.mjs";
import { TARGETS } from "../dist/target.js";
import { ROOT } from "./support/paths.ts";

const PLACES = ["CHANGELOG.md", "Cargo.lock", "Cargo.toml", "package.json", "src/native.ts"];

/** A copy of the files that say the version. */
function copy(): string {
  const root = mkdtempSync(join(realpathSync(tmpdir()), "proc-safe-release-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  for (const file of PLACES) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    cpSync(join(ROOT, file), join(root, file));
  }
  writeFileSync(join(root, "CHANGELOG.md"), "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.0.9] - 2026-01-02\n\n- The first.\n");
  return root;
}

test("a prepared release is one everywhere, and no other is", () => {
  const root = copy();
  const before = Object.fromEntries(PLACES.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  prepare(root, "9.8.7", "2026-12-01");
  expect(complaintsAbout(root, "v9.8.7")).toEqual([]);
  expect(complaintsAbout(root, "9.8.7")).toHaveLength(1);
  expect(complaintsAbout(root, "v9.8")).toHaveLength(PLACES.length + 1);
  expect(complaintsAbout(root, "v9.8.8")).toHaveLength(PLACES.length);
  for (const file of PLACES) {
    const after = readFileSync(join(root, file), "utf8");
    expect(after, file).not.toBe(before[file]);
    writeFileSync(join(root, file), before[file] ?? "");
    expect(complaintsAbout(root, "v9.8.7").map((text) => text.split(" ")[0]), file).toEqual([file]);
    writeFileSync(join(root, file), after);
  }
  const lock = join(root, "Cargo.lock");
  writeFileSync(lock, readFileSync(lock, "utf8").replace('"proc-safe-core"\nversion = "9.8.7"', '"proc-safe-core"\nversion = "9.8.6"'));
  expect(complaintsAbout(root, "v9.8.7")).toEqual([expect.stringContaining("Cargo.lock")]);
});

test("provenance names the repository that package.json names", () => {
  const root = copy();
  prepare(root, "9.8.7", "2026-12-01");
  expect(complaintsAbout(root, "v9.8.7", "owner/name")).toEqual([expect.stringContaining("package.json")]);
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as object;
  const repository = { type: "git", url: "git+https://example.org/owner/name.git" };
  writeFileSync(join(root, "package.json"), JSON.stringify({ ...manifest, repository }, undefined, 2));
  expect(complaintsAbout(root, "v9.8.7", "owner/name")).toEqual([]);
  expect(complaintsAbout(root, "v9.8.7", "other/name")).toHaveLength(1);
});

test("the notes are what was unreleased, and only that", () => {
  const root = copy();
  prepare(root, "9.8.7", "2026-12-01");
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  expect(changelog).toContain("\n## [Unreleased]\n\n## [9.8.7] - 2026-12-01\n");
  expect(releaseNotes(changelog, "9.8.7")).toBe("### Added\n\n- A thing.");
  expect(releaseNotes(changelog, "0.0.9")).toBe("- The first.");
  expect(releaseNotes(changelog, "9.8")).toBeUndefined();
  expect(releaseNotes(changelog, "Unreleased")).toBeUndefined();
  expect(() => prepare(root, "9.8.8", "2026-12-02")).toThrow("nothing unreleased");
  expect(() => prepare(copy(), "9.8", "2026-12-02")).toThrow("no version");
});

test("what comes before a release has a channel of its own, which npm insists on", () => {
  expect([channelOf("v1.0.0"), channelOf("1.0.0-rc.1")]).toEqual(["latest", "next"]);
  for (const [tag, channel] of [["v1.0.0", "latest"], ["v1.0.0-rc.1", "next"]] as const) {
    const { status, stdout } = spawnSync(process.execPath, [join(ROOT, "scripts/release.mjs"), "channel", tag], { encoding: "utf8" });
    expect([status, stdout]).toEqual([0, `${channel}\n`]);
  }
});

test("words that the script does not know are refused", () => {
  for (const words of [[], ["publish"], ["check"], ["check", "v1.0.0", "v2.0.0"], ["pack", "x"], ["constructor", "x"]]) {
    const { status, stdout } = spawnSync(process.execPath, [join(ROOT, "scripts/release.mjs"), ...words], { encoding: "utf8" });
    expect([status, stdout], words.join(" ")).toEqual([1, ""]);
  }
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, "scripts/release.mjs"), "check", "v99.0.0"], { encoding: "utf8" });
  expect(status).toBe(1);
  for (const file of PLACES) expect(stderr).toContain(file);
});

test("every binary is tried on its own system before anything is published", () => {
  const workflow = readFileSync(join(ROOT, ".github/workflows/release.yml"), "utf8");
  const tried = [...workflow.matchAll(/target: ([\w-]+), os: (\w+)/g)].map(([, target, os]) => ({ target, os }));
  expect(tried.map(({ target }) => target).sort()).toEqual([...TARGETS].sort());
  const systems = { linux: "ubuntu", darwin: "macos", win32: "windows" } as Record<string, string>;
  for (const { target, os } of tried) expect(os, target).toBe(systems[target?.split("-")[0] ?? ""]);
  const publish = workflow.slice(workflow.indexOf("\n  publish:"));
  expect(publish).toMatch(/needs: \[ci, try, smoke\]/);
  expect(publish).toMatch(/id-token: write/);
  expect(publish).toMatch(/npm publish .* --provenance .* --tag "\$\(node scripts\/release\.mjs channel "\$GITHUB_REF_NAME"\)"/);
  expect(workflow.match(/npm publish/g)).toHaveLength(1);
});
