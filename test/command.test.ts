// What processes run: read from real ones.

import { copyFileSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listProcesses, readProcessCommand } from "proc-safe";
import type { ProcessCommand, ReadProcessCommandOptions } from "proc-safe";
import { start, whileHeld } from "./support/fixture.ts";
import type { Held, Running } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { inNamespace, scriptValue } from "./support/node.ts";
import { fixturePath } from "./support/paths.ts";

const LONGEST = 2 << 20;
const COMMANDS = fixturePath("commands");

/** While a fixture holds a process with a command, which lives before and after the look. */
async function whileRunning(words: readonly string[], look: (held: Held) => void): Promise<void> {
  const fixture = start("commands", words);
  try {
    const held = (await fixture.next()) as unknown as Held & { ready: boolean };
    expect(held.ready).toBe(true);
    look(held);
    fixture.write("check\n");
    expect(await fixture.next()).toEqual({ still: true });
  } finally {
    await fixture.end();
  }
}

const hex = (text: string | Buffer): string => Buffer.from(text as string).toString("hex") || ".";

function run(argv: readonly (string | Buffer)[], env: readonly (string | Buffer)[] = []): string[] {
  return ["run", "-", ...argv.map(hex), "--", ...env.map(hex)];
}

/** By the single read, and by a census, which says the same. */
function commandOf(pid: number, environmentKeys: readonly string[] = []): ProcessCommand | null {
  const command = readProcessCommand(pid, { environmentKeys });
  const [row] = listProcesses({ pids: [pid], includeCommand: true, environmentKeys });
  expect(row?.command ?? null).toEqual(command);
  return command;
}

function failure(pid: number, options?: ReadProcessCommandOptions): object {
  try {
    return { command: readProcessCommand(pid, options) };
  } catch (error) {
    const { code, details } = error as { code: string; details?: object };
    return { code, ...details };
  }
}

nativeTest("our own command, exactly, and only the variables that were asked for", ["linux"], () => {
  const command = commandOf(process.pid, ["PATH", "NO_SUCH_VARIABLE", "PATH"]);
  const argv = readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1);
  const environ = readFileSync("/proc/self/environ", "utf8").split("\0");
  expect(command).toEqual({
    executable: readlinkSync("/proc/self/exe"),
    argv,
    cwd: readlinkSync("/proc/self/cwd"),
    environment: { PATH: environ.find((entry) => entry.startsWith("PATH="))?.slice(5) },
  });
  expect(commandOf(process.pid)?.environment).toEqual({});
});

nativeTest("a command is frozen plain data", ["linux"], () => {
  const command = commandOf(process.pid, ["PATH"])!;
  for (const part of [command, command.argv, command.environment]) expect(Object.isFrozen(part)).toBe(true);
  for (const part of [command, command.environment]) expect(Object.getPrototypeOf(part)).toBe(Object.prototype);
  expect(Object.values(command)).not.toContain(undefined);
  expect(structuredClone(command)).toEqual(command);
  const rows = listProcesses({ includeCommand: true, environmentKeys: ["PATH"] });
  expect(Object.isFrozen(rows) && rows.every((row) => Object.isFrozen(row))).toBe(true);
  expect(structuredClone(rows)).toEqual(rows);
});

const LISTS: readonly (readonly [string, readonly (string | Buffer)[]])[] = [
  ["empty strings", ["", "", "a", "", ""]],
  ["one empty string", [""]],
  ["newlines and controls", ["a\nb", "\u001b[31m", "\t"]],
  ["characters of all lengths", ["ä€😀", "\uFEFFbom", "x"]],
  ["bytes that are not UTF-8", [Buffer.from([0xff, 0x41, 0xc3]), Buffer.from([0xed, 0xa0, 0x80]), "b"]],
  ["words that look like options", ["--", "-", "=", "A=B"]],
];

for (const [what, argv] of LISTS) {
  nativeTest(`arguments with ${what}`, ["linux"], () =>
    whileRunning(run(argv), ({ pid }) => {
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      expect(commandOf(pid)?.argv).toEqual(argv.map((word) => (typeof word === "string" ? word : decoder.decode(word))));
      expect(commandOf(pid)?.executable).toBe(realpathSync(COMMANDS));
    }),
  );
}

nativeTest("arguments of a megabyte", ["linux"], () => {
  const letters = [..."abcdefghij"];
  return whileRunning(["run", "-", ...letters.map((letter) => `${letter}*100000`), "--"], ({ pid }) => {
    expect(commandOf(pid)?.argv).toEqual(letters.map((letter) => letter.repeat(100_000)));
  });
});

nativeTest("the first of several variables counts; a prefix, an empty name and no sign are none", ["linux"], () => {
  const env = ["AB=1", "A", "A=x=y", "A=2", "", "=B=3", "__proto__=p", Buffer.from("N=\xff", "latin1"), "E=", "7=seven"];
  return whileRunning(run(["w"], env), ({ pid }) => {
    const { environment } = commandOf(pid, ["E", "A", "B", "AB", "__proto__", "N", "ABC", "7", "constructor"])!;
    expect(Object.entries(environment).sort()).toEqual([["7", "seven"], ["A", "x=y"], ["AB", "1"], ["E", ""], ["N", "\uFFFD"], ["__proto__", "p"]]);
    expect(JSON.stringify(commandOf(pid, ["AB"]))).not.toContain("seven");
  });
});

nativeTest("null: gone, a zombie, an exiting process without memory, a number that is a thread's", ["linux"], async () => {
  expect(readProcessCommand(999_999_999)).toBeNull();
  expect(readProcessCommand(0)).toBeNull();
  expect(readProcessCommand(2 ** 32 - 1)).toBeNull();
  await whileHeld(["zombie"], ({ pid }) => expect(commandOf(pid, ["PATH"])).toBeNull());
  await whileHeld(["thread"], ({ helper }) => expect(readProcessCommand(helper)).toBeNull());
});

nativeTest("null in the exit window, once the memory is gone", ["linux", "root"], () =>
  whileHeld(["exiting"], ({ pid }) => {
    expect(readFileSync(`/proc/${pid}/cmdline`, "latin1")).toBe("");
    expect(commandOf(pid, ["PATH"])).toBeNull();
    expect(listProcesses({ pids: [pid], includeCommand: true })).toMatchObject([{ pid, exiting: true }]);
  }),
);

nativeTest("a process whose first thread is dead has a command all the same", ["linux"], () =>
  whileHeld(["leader-dead"], ({ pid }) => {
    expect(readFileSync(`/proc/${pid}/cmdline`, "latin1"), "the leader shows none").toBe("");
    const environ = readFileSync("/proc/self/environ", "utf8").split("\0");
    expect(commandOf(pid, ["PATH"])).toEqual({
      executable: realpathSync(fixturePath("states")),
      argv: [fixturePath("states"), "leader-dead"],
      cwd: process.cwd(),
      environment: { PATH: environ.find((entry) => entry.startsWith("PATH="))?.slice(5) },
    });
  }),
);

nativeTest("kernel threads run no program", ["linux", "kernel threads"], () => {
  expect(commandOf(2, ["PATH"])).toEqual({ argv: [], environment: {} });
});

nativeTest("arguments that were cleared are none, and the program is still told", ["linux", "root"], () =>
  whileRunning(["emptied"], ({ pid }) => {
    expect(commandOf(pid)).toMatchObject({ argv: [], executable: realpathSync(COMMANDS) });
  }),
);

nativeTest("a title that was written over the arguments is what the kernel shows", ["linux"], async () => {
  for (const title of ["worker: 3 of 4", "x".repeat(200)]) {
    await whileRunning(["title", hex(title)], ({ pid }) => {
      const { argv, executable } = commandOf(pid)!;
      expect(argv).toHaveLength(1);
      expect(argv[0]!.startsWith(title.slice(0, 10))).toBe(true);
      expect(argv[0]).toBe(readFileSync(`/proc/${pid}/cmdline`, "utf8").replace(/\0$/, ""));
      expect(executable).toBe(realpathSync(COMMANDS));
    });
  }
});

nativeTest("what the kernel cuts is no shorter list, and no variable that is not set", ["linux"], async () => {
  const cut = { code: "operation-failed", reason: "cut-short" };
  await whileRunning(["cut", "arguments", "short", "x".repeat(30_000), "tail"], ({ pid }) => {
    const shown = readFileSync(`/proc/${pid}/cmdline`).length;
    expect(shown).toBeLessThan(30_000);
    expect(failure(pid)).toEqual({ ...cut, pid });
    const [row] = listProcesses({ pids: [pid], includeCommand: true });
    expect(row).toMatchObject({ pid, state: "running" });
    expect("command" in row!).toBe(false);
  });
  process.env["PROC_SAFE_LONG"] = "x".repeat(30_000);
  try {
    await whileRunning(["cut", "environment"], ({ pid }) => {
      expect(commandOf(pid)?.argv).toEqual([COMMANDS, "cut", "environment"]);
      expect(failure(pid, { environmentKeys: ["PATH"] })).toEqual({ ...cut, pid });
    });
  } finally {
    delete process.env["PROC_SAFE_LONG"];
  }
});

nativeTest("2 MiB of arguments are read, a byte more is an error", ["linux"], async () => {
  // With a NUL behind each piece of 100,000.
  const letters = (bytes: number): string => `x*${bytes - Math.ceil(bytes / 100_001)}`;
  await whileRunning(["run", "-", letters(LONGEST), "--"], ({ pid }) => {
    const argv = commandOf(pid)!.argv;
    expect(argv.reduce((sum, word) => sum + word.length + 1, 0)).toBe(LONGEST);
    expect(new Set(argv.join("")).size).toBe(1);
  });
  await whileRunning(["run", "-", letters(LONGEST + 1), "--"], ({ pid }) => {
    expect(failure(pid)).toEqual({ code: "operation-failed", reason: "too-long", pid });
    expect("command" in listProcesses({ pids: [pid], includeCommand: true })[0]!).toBe(false);
  });
  await whileRunning(["run", "-", hex("w"), "--", `x*${LONGEST}`, hex("A=1")], ({ pid }) => {
    expect(commandOf(pid)?.argv).toEqual(["w"]);
    expect(failure(pid, { environmentKeys: ["A"] })).toEqual({ code: "operation-failed", reason: "too-long", pid });
    expect("command" in listProcesses({ pids: [pid], includeCommand: true, environmentKeys: ["A"] })[0]!).toBe(false);
  });
});

/** How often; a slow proof asks for more. */
const LOOKS = Math.ceil(Number(process.env["PROC_SAFE_ROWS"] ?? 20_000) / 10);

nativeTest("no command mixes two programs that execute each other", ["linux"], async () => {
  const place = mkdtempSync(join(realpathSync(tmpdir()), "proc-safe-swap-"));
  const programs = ["one", "two"].map((name) => join(place, name));
  for (const program of programs) copyFileSync(COMMANDS, program);
  try {
    await whileRunning(["swap", ...programs], ({ pid }) => {
      const seen = new Map<string, number>();
      let unstable = 0;
      for (let look = 0; look < LOOKS; look++) {
        let command: ProcessCommand | null | undefined;
        if (look % 2) command = listProcesses({ pids: [pid], includeCommand: true, environmentKeys: ["WHO"] })[0]?.command;
        else {
          const answer = failure(pid, { environmentKeys: ["WHO"] }) as { command?: ProcessCommand | null; code?: string };
          if (answer.code !== undefined) expect(answer).toEqual({ code: "incomplete", reason: "unstable-pid", pid });
          command = answer.command;
        }
        if (command === undefined) unstable++;
        else {
          const { executable, argv, environment } = command!;
          seen.set(JSON.stringify([executable, argv, environment]), look);
        }
      }
      const expected = programs.map((program, index) => [
        program,
        // The first word of the first program is the only one that it was not executed with by the other.
        [program, "swapping", `WHO=${index}`, ...programs, ...(index === 1 ? ["a word more"] : [])],
        { WHO: `WHO=${index}`.slice(4) },
      ]);
      expect([...seen.keys()].sort()).toEqual(expected.map((one) => JSON.stringify(one)).sort());
      expect(unstable).toBeLessThan(LOOKS / 2);
    });
  } finally {
    rmSync(place, { recursive: true });
  }
});

nativeTest("a process that does not answer is waited for no longer than asked, and costs no census", ["linux", "root", "fuse"], async () => {
  const fixture: Running = start("blocked", []);
  try {
    const { pid, ready } = await fixture.next();
    expect(ready).toBe(true);
    const blocked = Number(pid);
    const late = (timeoutMs: number): number => {
      const begun = performance.now();
      expect(failure(blocked, { timeoutMs })).toEqual({ code: "timeout" });
      return performance.now() - begun;
    };
    expect(late(50)).toBeGreaterThanOrEqual(49);
    const [row] = listProcesses({ pids: [blocked], includeCommand: true, timeoutMs: 4_000 });
    expect(row).toMatchObject({ pid: blocked, name: "blocked", state: "running" });
    expect("command" in row!).toBe(false);
    // Others are read though this one is not.
    const rows = listProcesses({ includeCommand: true, timeoutMs: 8_000 });
    expect(rows.find((one) => one.pid === process.pid)?.command?.argv).toEqual(readProcessCommand(process.pid)?.argv);
    expect(rows.some((one) => one.pid === blocked && one.command === undefined)).toBe(true);
    late(50);
    // Four helpers are left behind now: nobody is waited for any more.
    expect(late(100_000)).toBeLessThan(50_000);
    expect(failure(process.pid)).toEqual({ code: "timeout" });
    expect(listProcesses({ includeCommand: true }).some((one) => one.pid === process.pid && one.command === undefined)).toBe(true);
    expect(listProcesses({ timeoutMs: 100_000 }).some((one) => one.pid === blocked)).toBe(true);
    fixture.write("check\n");
    expect(await fixture.next()).toEqual({ still: true });
    fixture.write("release\n");
    expect(await fixture.next()).toEqual({ released: true });
    const until = Date.now() + 60_000;
    let command: object;
    do command = failure(blocked, { timeoutMs: 10_000 });
    while ("code" in command && Date.now() < until);
    expect(command).toMatchObject({ command: { argv: [fixturePath("blocked")] } });
  } finally {
    await fixture.end();
  }
});

const LOOK = `
  const { readProcessCommand } = procSafe;
  const look = (pid, environmentKeys) => {
    const [row] = listProcesses({ pids: [pid], includeCommand: true, environmentKeys });
    return { single: attempt(() => readProcessCommand(pid, { environmentKeys })), census: row?.command, row };
  };
  const [stranger, relative] = [process.env.STRANGER, process.env.RELATIVE].map(Number);
  report({
    stranger: look(stranger), asked: look(stranger, ["PATH"]),
    relative: look(relative, ["RELATIVE", "STRANGER"]),
    own: look(process.pid, ["STRANGER"]),
    absent: attempt(() => readProcessCommand(999999)),
    ids: { stranger, relative },
  });
`;

interface Looked {
  readonly single: Record<string, unknown> & { readonly value?: Record<string, unknown> };
  readonly census?: Record<string, unknown>;
  readonly row?: Record<string, unknown>;
}

interface LookedAll {
  readonly stranger: Looked;
  readonly asked: Looked;
  readonly relative: Looked;
  readonly own: Looked;
  readonly absent: unknown;
  readonly ids: { readonly stranger: number; readonly relative: number };
}

nativeTest("of another user's process the arguments are told, and what is refused is not called unset", ["linux", "root"], () => {
  const { stranger, asked, relative, own, absent, ids } = scriptValue<LookedAll>(LOOK, { launcher: inNamespace("", "nobody") });
  const told = { argv: ["sleep", "1000"], environment: {} };
  expect(stranger.single).toEqual({ value: told });
  expect(stranger.census).toEqual(told);
  expect(asked.single).toEqual({ code: "access-denied", pid: ids.stranger, syscall: "openat", errno: "EACCES" });
  expect(asked.row).toMatchObject({ pid: ids.stranger, owner: "different", state: "running" });
  expect("command" in asked.row!).toBe(false);
  expect(relative.single.value).toMatchObject({ argv: ["sleep", "1000"], environment: { STRANGER: String(ids.stranger) } });
  expect(relative.single.value?.["executable"]).toMatch(/sleep|coreutils|busybox/);
  expect(relative.census).toEqual(relative.single.value);
  expect(own.single.value).toMatchObject({ environment: { STRANGER: String(ids.stranger) } });
  expect(absent).toEqual({ value: null });
});

nativeTest("hidepid: refused, hidden, never null", ["linux", "root"], () => {
  const closed = scriptValue<LookedAll>(LOOK, { launcher: inNamespace("hidepid=1", "nobody") });
  expect(closed.stranger.single).toEqual({ code: "access-denied", pid: closed.ids.stranger, syscall: "openat", errno: "EPERM" });
  expect(closed.stranger.row).toEqual({ pid: closed.ids.stranger, owner: "different", uid: 0 });
  expect(closed.relative.single.value).toMatchObject({ argv: ["sleep", "1000"] });
  const hidden = scriptValue<LookedAll>(LOOK, { launcher: inNamespace("hidepid=2", "nobody") });
  expect(hidden.stranger.single).toEqual({ code: "access-denied", reason: "visibility-policy", pid: hidden.ids.stranger });
  expect(hidden.stranger.row).toEqual({ pid: hidden.ids.stranger, owner: "unknown" });
  expect(hidden.absent).toEqual({ value: null });
});

nativeTest("a full census has the commands that single reads have, and none unless asked", ["linux"], async () => {
  await whileRunning(run(["a", "", "b"], ["A=1"]), ({ pid }) => {
    const rows = listProcesses({ includeCommand: true, environmentKeys: ["A"] });
    expect(rows.find((row) => row.pid === pid)?.command).toEqual(readProcessCommand(pid, { environmentKeys: ["A"] }));
    expect(rows.find((row) => row.pid === process.pid)?.command?.argv).toEqual(readProcessCommand(process.pid)?.argv);
    for (const row of listProcesses()) expect("command" in row).toBe(false);
    for (const row of listProcesses({ includeCommand: false })) expect("command" in row).toBe(false);
    const [plain] = listProcesses({ pids: [pid] });
    const { command: _, ...rest } = rows.find((row) => row.pid === pid)!;
    expect(rest).toEqual(plain);
  });
});

test("wrong arguments of commands", () => {
  const invalid = (call: () => unknown): void => expect(call).toThrow(expect.objectContaining({ code: "invalid-argument" }));
  const wrongKeys: unknown[] = ["PATH", [""], ["A=B"], ["A\0"], [7], [undefined], ["\ud800"], ["x".repeat(1025)], Array(1025).fill("A"), { length: 1, 0: "A" }];
  for (const environmentKeys of wrongKeys as string[][]) {
    invalid(() => readProcessCommand(process.pid, { environmentKeys }));
    invalid(() => listProcesses({ pids: [], includeCommand: true, environmentKeys }));
  }
  for (const pid of [-1, 1.5, 2 ** 32, NaN, "1", undefined] as number[]) invalid(() => readProcessCommand(pid));
  for (const options of [null, [], 7, { timeout: 1 }, { timeoutMs: 0 }, { timeoutMs: Infinity }] as object[]) {
    invalid(() => readProcessCommand(process.pid, options));
  }
  invalid(() => listProcesses({ includeCommand: 1 as unknown as boolean }));
  invalid(() => listProcesses({ environmentKeys: ["A"] }));
  invalid(() => listProcesses({ includeCommand: false, environmentKeys: [] }));
  invalid(() => readProcessCommand(process.pid, { get environmentKeys(): never { throw new Error("no"); } }));
});
