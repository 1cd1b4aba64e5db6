// The command line: exit codes, shapes, and what it never lets through to a terminal.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listProcesses, readProcessIdentity } from "proc-safe";
import { nativeStatus } from "proc-safe/native";
import { formatTable } from "../dist/table.js";
import { whileHeld } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { ROOT } from "./support/paths.ts";

const CLI = join(ROOT, "dist/cli.js");

function cli(words: readonly string[], env: Record<string, string> = {}) {
  const result = spawnSync(process.execPath, [CLI, ...words], {
    encoding: "utf8",
    env: { ...process.env, ...env },
    maxBuffer: 1 << 28,
  });
  return { status: result.status, out: result.stdout, err: result.stderr };
}

test("list prints a row a process", () => {
  const { status, out, err } = cli(["list"]);
  const [head, ...lines] = out.trimEnd().split("\n");
  expect([status, err]).toEqual([0, ""]);
  expect(head).toMatch(/^ *PID +PPID +PGID +(SID +)?UID +OWNER +STATE +STARTED +NAME$/);
  const own = lines.find((line) => line.trimStart().startsWith(`${process.pid} `));
  expect(own).toMatch(new RegExp(`^ *${process.pid} +${process.ppid} .* same +running +\\d{4}-\\d\\d-\\d\\d `));
});

test("list --json has the shapes of the API", () => {
  const { status, out } = cli(["list", "--json", "--pid", String(process.pid)]);
  expect(status).toBe(0);
  expect(JSON.parse(out)).toEqual(listProcesses({ pids: [process.pid] }));
  const everything = JSON.parse(cli(["list", "--json"]).out) as { pid: number }[];
  expect(everything.some((row) => row.pid === process.pid)).toBe(true);
});

test("an absent pid is 1, also beside a present one", () => {
  expect(cli(["list", "--pid", "4294967295"]).status).toBe(1);
  const both = cli(["list", "--pid", "4294967295", "--pid", String(process.pid), "--pid", String(process.pid)]);
  expect(both.status).toBe(1);
  expect(both.out).toContain(String(process.pid));
  expect(JSON.parse(cli(["list", "--json", "--pid", "4294967295"]).out)).toEqual([]);
});

for (const words of [
  [],
  ["lost"],
  ["list", "--pid", "x"],
  ["list", "--pid", "-1"],
  ["list", "--pid", "1.5"],
  ["list", "--pid", "4294967296"],
  ["list", "--pid"],
  ["list", "1"],
  ["tree", "x"],
  ["tree", "1", "2"],
  ["identity"],
  ["identity", "x"],
  ["identity", "1", "2"],
  ["list", "--nope"],
  ["status", "extra"],
]) {
  test(`wrong usage is 2: ${words.join(" ")}`, () => {
    const { status, out, err } = cli(words);
    expect([status, out]).toEqual([2, ""]);
    expect(err).toContain("Usage:");
  });
}

test("help fits a screen, and needs no binding", () => {
  for (const words of ["--help", "-h", "help", "list --help", "identity -h"]) {
    const { status, out, err } = cli(words.split(" "), { PROC_SAFE_NATIVE: "require", NODE_OPTIONS: "--no-addons" });
    expect([status, err]).toEqual([0, ""]);
    expect(out.split("\n").length).toBeLessThanOrEqual(25);
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  }
});

test("identity", () => {
  const { status, out } = cli(["identity", String(process.pid)]);
  expect(status).toBe(0);
  expect(out).toMatch(new RegExp(`^pid +${process.pid}$`, "m"));
  expect(out).toMatch(/^startTimeMicros +\d+ \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)$/m);
  const json = cli(["identity", "--json", String(process.pid)]);
  expect([json.status, JSON.parse(json.out)]).toEqual([0, readProcessIdentity(process.pid)]);
  expect(cli(["identity", "4294967295"])).toEqual({ status: 1, out: "", err: "" });
  expect(cli(["identity", "--json", "4294967295"])).toEqual({ status: 1, out: "null\n", err: "" });
});

nativeTest("tree shows who started whom, and states that are not running", ["linux"], () =>
  whileHeld(["zombie"], ({ pid, parent }) => {
    const { status, out } = cli(["tree", String(process.pid)]);
    const lines = out.trimEnd().split("\n");
    expect(status).toBe(0);
    expect(lines[0]).toMatch(new RegExp(`^ *${process.pid}  \\S`));
    const at = lines.findIndex((line) => line.trimStart().startsWith(`${parent} `));
    expect(lines[at]).toMatch(/ {2}[├└]─ states$/);
    expect(lines[at + 1]).toMatch(new RegExp(`^ *${pid}  [│ ] {2}└─ states \\(zombie\\)$`));
    const all = cli(["tree"]).out;
    for (const row of listProcesses({ pids: [1, parent, pid] })) expect(all).toMatch(new RegExp(`^ *${row.pid}  `, "m"));
  }),
);

test("tree of an absent process is 1", () => {
  expect(cli(["tree", "4294967295"])).toEqual({ status: 1, out: "", err: "" });
});

nativeTest("on a terminal: its width, and colours unless NO_COLOR is set", ["linux"], () =>
  whileHeld(["stopped"], ({ pid }) => {
    const onTerminal = (words: string, env: Record<string, string> = {}, columns = 40): string => {
      const line = `stty cols ${columns}; "${process.execPath}" "${CLI}" ${words}`;
      const { NO_COLOR: _, FORCE_COLOR: __, ...rest } = process.env;
      const { stdout } = spawnSync("script", ["-qec", line, "/dev/null"], { encoding: "utf8", env: { ...rest, TERM: "xterm", ...env } });
      return stdout.replaceAll("\r\n", "\n");
    };
    const coloured = onTerminal(`list --pid ${pid}`);
    expect(coloured).toContain("\u001b[33mstopped\u001b[39m");
    expect(onTerminal(`tree ${pid}`)).toContain("\u001b[33m (stopped)\u001b[39m");
    expect(onTerminal(`list --pid ${pid}`, { CI: "true" })).toBe(coloured);
    for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }] as Record<string, string>[]) {
      const plain = onTerminal(`list --pid ${pid}`, env);
      expect(plain).not.toContain("\u001b");
      expect(plain.trimEnd().split("\n").every((line) => line.length <= 40)).toBe(true);
      expect(plain).toMatch(/^ *PID .* NAME$/m);
      expect(plain).not.toContain("STARTED");
    }
    expect(onTerminal(`list --pid ${pid}`, {}, 0), "a terminal that nobody has sized").toContain("states");
    expect(cli(["list", "--pid", String(pid)]).out).not.toContain("\u001b");
  }),
);

test("status", () => {
  const { status, out } = cli(["status"]);
  expect(status).toBe(0);
  expect(out).toMatch(/^state +ready$/m);
  expect(JSON.parse(cli(["status", "--json"], { PROC_SAFE_NATIVE: "auto" }).out)).toEqual({
    ...nativeStatus(),
    mode: "auto",
  });
});

test("a failed census is 3, with its code", () => {
  const off = cli(["list"], { PROC_SAFE_NATIVE: "off" });
  expect([off.status, off.out]).toEqual([3, ""]);
  expect(off.err).toMatch(/^proc-safe: helper-unavailable: /);
  expect(cli(["status"], { PROC_SAFE_NATIVE: "off" }).status).toBe(3);
  for (const words of [["list"], ["list", "--pid", "1"], ["tree"], ["identity", "1"], ["status"]]) {
    const { status, out, err } = cli(words, { PROC_SAFE_NATIVE: "require", NODE_OPTIONS: "--no-addons" });
    expect([status, out], words.join(" ")).toEqual([3, ""]);
    expect(err).toMatch(/^proc-safe: helper-unavailable: .*\n$/);
  }
});

nativeTest("1 says that a process is absent, and nothing else", ["linux"], () => {
  const absent = ["list", "--pid", "4294967295"];
  for (const [words, redirection, expected] of [
    [["list"], ">/dev/full", 3],
    [["identity", String(process.pid)], ">/dev/full", 3],
    [["lost"], "2>/dev/full", 2],
    [absent, "2>/dev/full", 1],
  ] as const) {
    const line = `"$0" "$@" ${redirection}`;
    const { status, stderr } = spawnSync("sh", ["-c", line, process.execPath, CLI, ...words], { encoding: "utf8" });
    expect([status, stderr.split("\n").length <= 2], `${words.join(" ")} ${redirection}`).toEqual([expected, true]);
  }
  // A reader of both streams that has gone.
  for (const [words, expected] of [[["lost"], 2], [absent, 1], [["list"], 0]] as const) {
    const line = `{ until [ -e "$GONE" ]; do sleep 0.01; done; "$0" "$@"; echo $? >"$SAID"; } 2>&1 | { exec <&-; : >"$GONE"; }; cat "$SAID"`;
    const place = mkdtempSync(join(tmpdir(), "proc-safe-cli-"));
    const env = { ...process.env, GONE: join(place, "gone"), SAID: join(place, "said") };
    const { stdout } = spawnSync("sh", ["-c", line, process.execPath, CLI, ...words], { encoding: "utf8", env });
    rmSync(place, { recursive: true });
    expect(stdout, words.join(" ")).toBe(`${expected}\n`);
  }
});

nativeTest("a tree fits the terminal, and a branch that is too deep for it keeps its pid", ["linux"], () =>
  whileHeld(["zombie"], ({ pid, parent }) => {
    for (const [columns, note] of [[40, " (zombie)"], [24, ""], [10, ""]] as const) {
      const line = `stty cols ${columns}; "${process.execPath}" "${CLI}" tree ${process.pid}`;
      const { stdout } = spawnSync("script", ["-qec", line, "/dev/null"], { encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });
      const lines = stdout.trimEnd().split("\r\n");
      expect(Math.max(...lines.map((text) => text.length))).toBeLessThanOrEqual(columns);
      for (const shown of [parent, pid]) expect(lines.some((text) => text.trimStart().startsWith(`${shown} `))).toBe(true);
      expect(lines.find((text) => text.trimStart().startsWith(`${pid} `))).toContain(note);
    }
  }),
);

nativeTest("control characters never reach the terminal", ["linux"], () =>
  whileHeld(["named", Buffer.from("a\u001b[2Jb\nc\u007f\u009b").toString("hex")], ({ pid }) => {
    const table = cli(["list", "--pid", String(pid)]).out;
    const json = cli(["list", "--json", "--pid", String(pid)]).out;
    for (const text of [table, json]) expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(table.trimEnd().split("\n")).toHaveLength(2);
    expect(table).toContain("a\\u{1b}[2Jb\\nc\\u{7f}\\u{9b}");
    expect(JSON.parse(json)).toEqual(listProcesses({ pids: [pid] }));
  }),
);

nativeTest("nor what turns the direction of writing or ends a line", ["linux"], () =>
  whileHeld(["named", Buffer.from("a\u202eb\u2028c\u2066").toString("hex")], ({ pid }) => {
    const table = cli(["list", "--pid", String(pid)]).out;
    expect(table.trimEnd()).toMatch(/ {2}a\\u\{202e\}b\\u\{2028\}c\\u\{2066\}$/);
    const json = cli(["list", "--json", "--pid", String(pid)]).out;
    expect(json).toContain("a\\u202eb\\u2028c\\u2066");
    expect(JSON.parse(json)).toEqual(listProcesses({ pids: [pid] }));
  }),
);

test("a table counts the cells of a terminal", () => {
  const column = (title: string, names: string[]) => ({ title, align: "left" as const, optional: 0, cells: names });
  const columns = [column("A", ["試す", "e\u0301", "🧨"]), column("NAME", ["試す試す", "abcdefghi", "é"])];
  expect(formatTable(columns, 14)).toEqual(["A     NAME", "試す  試す試す", "e\u0301     abcdefg…", "🧨    é"]);
  expect(formatTable(columns, 11)[1]).toBe("試す  試す…");
});

test("a reader that has seen enough is no error", async () => {
  const child = spawn(process.execPath, [CLI, "list", "--json"], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  let err = "";
  child.stderr.on("data", (text) => (err += String(text)));
  const status = await new Promise((resolve) => child.once("close", resolve));
  expect([status, err]).toEqual([0, ""]);
});

test("a table leaves columns out before it cuts the last", () => {
  const column = (title: string, optional: number, cells: string[]) =>
    ({ title, align: "left" as const, optional, cells });
  const columns = [column("A", 0, ["1"]), column("BB", 2, ["22"]), column("CC", 1, ["333"]), column("NAME", 0, ["abcdefgh"])];
  expect(formatTable(columns, 80)).toEqual(["A  BB  CC   NAME", "1  22  333  abcdefgh"]);
  expect(formatTable(columns, 16)).toEqual(["A  CC   NAME", "1  333  abcdefgh"]);
  expect(formatTable(columns, 13)).toEqual(["A  NAME", "1  abcdefgh"]);
  expect(formatTable(columns, 7)).toEqual(["A  NAME", "1  abc…"]);
  const long = [column("A", 1, ["1"]), column("NAME", 0, ["abcdefghijklmnopqrstuvwxyz"])];
  expect(formatTable(long, 18), "a name that is longer than any of Linux").toEqual(["A  NAME", "1  abcdefghijklmn…"]);
  expect(formatTable(columns, 2)).toEqual(["A", "1"]);
  expect(formatTable(columns, 0)).toEqual(["", ""]);
  expect(formatTable([], 10)).toEqual([""]);
});
