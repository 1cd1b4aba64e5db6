#!/usr/bin/env node
// The command line: a face of the public API, nothing more. What may load the binding is imported where it is
// used: under PROC_SAFE_NATIVE=require an import fails as a call does otherwise.

import { inspect, parseArgs, styleText } from "node:util";
import { ProcSafeError } from "./errors.js";
import { escapeControls } from "./escape.js";
import { cut, formatTable } from "./table.js";
import type { Column } from "./table.js";
import type { ProcessTree } from "./tree.js";
import type { ProcessSnapshot } from "./types.js";

const HELP = `Usage: proc-safe <command> [options]

  list            print a census of this host's processes
    --pid N       only process N; may be given more than once
    --visible     leave out what is hidden from you, instead of failing
    --json        print the rows of listProcesses() as one JSON document
  tree [PID]      print who started whom, of all processes or below PID
    --visible     as above
  identity PID    say which process PID is
    --json        print the object of readProcessIdentity()
  status          say whether the native binding is usable
    --json        print the object of nativeStatus()

A dash stands for what was not observed. Colours appear on a terminal only,
and never while NO_COLOR is set.

Exit status: 0 done, 1 an asked process is absent, 2 wrong usage,
3 there is no answer, or it could not be written (why on standard error).
`;

/** Words that are not as the help says. */
class UsageError extends Error {}

async function main(words: readonly string[]): Promise<number> {
  const [command, ...rest] = words;
  if (command === "help" || words.includes("--help") || words.includes("-h")) {
    process.stdout.write(HELP);
    return 0;
  }
  switch (command) {
    case undefined:
      process.stderr.write(HELP);
      return 2;
    case "list":
      return list(rest);
    case "tree":
      return tree(rest);
    case "identity":
      return identity(rest);
    case "status":
      return status(rest);
    default:
      throw new UsageError(`there is no command "${command}"`);
  }
}

async function list(words: readonly string[]): Promise<number> {
  const { values } = parse(words, {
    pid: { type: "string", multiple: true },
    json: { type: "boolean" },
    visible: { type: "boolean" },
  });
  const pids = (values["pid"] as string[] | undefined)?.map(parsePid);
  const { listProcesses } = await import("./inspect.js");
  const rows = listProcesses({ pids, visibility: values["visible"] === true ? "visible" : "all" });
  if (values["json"] === true) printJson(rows);
  else print(formatTable(columns(rows), width(), (head) => paint("bold", head)));
  return pids === undefined || rows.length === new Set(pids).size ? 0 : 1;
}

function columns(rows: readonly ProcessSnapshot[]): Column[] {
  const column = (
    title: string,
    align: Column["align"],
    optional: number,
    cell: (row: ProcessSnapshot) => string | number | undefined,
    colour?: Column["paint"],
  ): Column => ({ title, align, optional, cells: rows.map((row) => String(cell(row) ?? "-")), paint: colour });
  return [
    column("PID", "right", 0, (row) => row.pid),
    column("PPID", "right", 1, (row) => row.parentPid),
    column("PGID", "right", 4, (row) => row.processGroupId),
    column("SID", "right", 5, (row) => row.sessionId),
    column("UID", "right", 3, (row) => row.uid),
    column("OWNER", "left", 6, (row) => row.owner),
    column("STATE", "left", 2, stateOf, (text, row) => paintState(rows[row], text)),
    column("STARTED", "left", 7, (row) => row.identity && localTime(row.identity.startTimeMicros)),
    column("NAME", "left", 0, nameOf),
  ];
}

async function tree(words: readonly string[]): Promise<number> {
  const { values, positionals } = parse(words, { visible: { type: "boolean" } }, 1);
  const [word] = positionals;
  const pid = word === undefined ? undefined : parsePid(word);
  const [{ listProcesses }, { buildForest, findTree }] = await Promise.all([import("./inspect.js"), import("./tree.js")]);
  const rows = listProcesses({ visibility: values["visible"] === true ? "visible" : "all" });
  const forest = buildForest(rows);
  const top = pid === undefined ? undefined : findTree(forest, pid);
  if (pid !== undefined && top === undefined) return 1;
  const digits = String(rows.at(-1)?.pid ?? 0).length;
  for (const node of top === undefined ? forest : [top]) printBranch(node, digits);
  return 0;
}

/** One line a process: its pid, its place, its name, and its state unless that is running. */
function printBranch(top: ProcessTree, digits: number): void {
  const lines: string[] = [];
  const stack: { node: ProcessTree; own: string; below: string }[] = [{ node: top, own: "", below: "" }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { node, own, below } = next;
    const place = `${String(node.row.pid).padStart(digits)}  ${own}`;
    const state = stateOf(node.row);
    const note = state === "running" ? "" : ` (${state ?? "unknown"})`;
    const name = nameOf(node.row) ?? "-";
    const room = width() - place.length - note.length;
    // A branch that is too deep for the terminal keeps its pid.
    lines.push(room > 0 ? place + cut(name, room) + paintState(node.row, note) : cut(place + name + note, width()));
    const last = node.children.length - 1;
    for (const [index, child] of [...node.children.entries()].toReversed()) {
      const [branch, trunk] = index === last ? ["└─ ", "   "] : ["├─ ", "│  "];
      stack.push({ node: child, own: below + branch, below: below + trunk });
    }
  }
  print(lines);
}

async function identity(words: readonly string[]): Promise<number> {
  const { values, positionals } = parse(words, { json: { type: "boolean" } }, 1);
  if (positionals[0] === undefined) throw new UsageError("identity needs a PID");
  const pid = parsePid(positionals[0]);
  const { readProcessIdentity } = await import("./identity.js");
  const found = readProcessIdentity(pid);
  if (values["json"] === true) printJson(found);
  else if (found !== null) {
    const started = localTime(found.startTimeMicros);
    printFacts({ ...found, startTimeMicros: `${found.startTimeMicros} (${started})` });
  }
  return found === null ? 1 : 0;
}

async function status(words: readonly string[]): Promise<number> {
  const { values } = parse(words, { json: { type: "boolean" } });
  const { nativeStatus } = await import("./native-status.js");
  const report = nativeStatus();
  const { error, ...facts } = report;
  if (values["json"] === true) printJson(report);
  else printFacts({ ...facts, ...(error !== undefined && { error: `${error.code}: ${error.message}` }) });
  return report.state === "ready" ? 0 : 3;
}

function nameOf(row: ProcessSnapshot): string | undefined {
  return row.name === undefined ? undefined : escapeControls(row.name);
}

function stateOf(row: ProcessSnapshot): string | undefined {
  return row.exiting === true ? "exiting" : row.state;
}

/** ISO 8601 with a space, in the local time zone, to the second. */
function localTime(micros: number): string {
  const date = new Date(micros / 1000);
  if (Number.isNaN(date.getTime())) return "-";
  const two = (number: number): string => String(number).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":")}`;
}

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

function parse(
  words: readonly string[],
  options: Options,
  most = 0,
): { values: Record<string, unknown>; positionals: string[] } {
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args: [...words], options, strict: true, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const extra = parsed.positionals[most];
  if (extra !== undefined) throw new UsageError(`"${extra}" is one word too many`);
  return parsed;
}

function parsePid(word: string): number {
  const pid = /^\d{1,10}$/.test(word) ? Number(word) : NaN;
  if (!(pid < 2 ** 32)) throw new UsageError(`"${word}" is no pid`);
  return pid;
}

function width(): number {
  // A terminal that nobody has sized says 0.
  return (process.stdout.isTTY && process.stdout.columns) || Infinity;
}

const COLOURS: Readonly<Record<string, "red" | "yellow" | "magenta">> = {
  zombie: "red",
  stopped: "yellow",
  exiting: "magenta",
};

function paintState(row: ProcessSnapshot | undefined, text: string): string {
  const colour = row === undefined ? undefined : COLOURS[stateOf(row) ?? ""];
  return colour === undefined ? text : paint(colour, text);
}

function paint(style: Parameters<typeof styleText>[0], text: string): string {
  const { NO_COLOR, TERM } = process.env;
  const plain = !process.stdout.isTTY || (NO_COLOR ?? "") !== "" || TERM === "dumb";
  // Not by the stream: Node's own answer differs between versions, and where CI is set.
  return plain || text === "" ? text : styleText(style, text, { validateStream: false });
}

function print(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
}

function printFacts(facts: Readonly<Record<string, unknown>>): void {
  const longest = Math.max(...Object.keys(facts).map((key) => key.length));
  print(Object.entries(facts).map(([key, value]) => `${key.padEnd(longest)}  ${escapeControls(String(value))}`));
}

/** JSON escapes C0 by itself; the others can steer a terminal too. */
function printJson(value: unknown): void {
  const text = JSON.stringify(value, null, 2).replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  process.stdout.write(`${text}\n`);
}

/** What is in the way of an answer. Never 1, which says that a process is absent. */
function explain(error: unknown): number {
  if (error instanceof UsageError) {
    process.stderr.write(`proc-safe: ${escapeControls(error.message)}\n\n${HELP}`);
    return 2;
  }
  const isKnown = error instanceof ProcSafeError;
  const isOfSystem = error instanceof Error && "syscall" in error;
  const text = isKnown ? `${error.code}: ${error.message}` : isOfSystem ? error.message : undefined;
  process.stderr.write(`proc-safe: ${text === undefined ? inspect(error) : escapeControls(text)}\n`);
  return 3;
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(); // the reader has seen enough
  process.exitCode = explain(error);
});
process.stderr.on("error", () => {}); // the exit status says it too

process.exitCode = await main(process.argv.slice(2)).catch(explain);
