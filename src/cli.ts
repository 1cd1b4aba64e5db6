#!/usr/bin/env node
// The command line: a face of the public API, nothing more.

import { parseArgs } from "node:util";
import { ProcSafeError } from "./errors.js";
import { escapeControls } from "./escape.js";
import { listProcesses } from "./inspect.js";
import { nativeStatus } from "./native-status.js";
import { formatTable } from "./table.js";
import type { Column } from "./table.js";
import type { ProcessSnapshot } from "./types.js";

const HELP = `Usage: proc-safe <command> [options]

  list            print a census of this host's processes
    --pid N       only process N; may be given more than once
    --visible     leave out what is hidden from you, instead of failing
    --json        print the rows of listProcesses() as one JSON document
  status          say whether the native binding is usable
    --json        print the object of nativeStatus() as one JSON document

Exit status: 0 done, 1 an asked process is absent, 2 wrong usage,
3 the census failed (code and message on standard error).
`;

/** Words that are not as the help says. */
class UsageError extends Error {}

function main(words: readonly string[]): number {
  const [command, ...rest] = words;
  if (command === undefined || command === "--help" || command === "-h" || command === "help") {
    (command === undefined ? process.stderr : process.stdout).write(HELP);
    return command === undefined ? 2 : 0;
  }
  if (command === "list") return list(rest);
  if (command === "status") return status(rest);
  throw new UsageError(`there is no command "${command}"`);
}

function list(words: readonly string[]): number {
  const { pid, json, visible } = parse(words, {
    pid: { type: "string", multiple: true },
    json: { type: "boolean" },
    visible: { type: "boolean" },
  });
  const pids = (pid as string[] | undefined)?.map(parsePid);
  const rows = listProcesses({ pids, ...(visible === true && { visibility: "visible" }) });
  if (json === true) printJson(rows);
  else print(formatTable(columns(rows), process.stdout.columns ?? Infinity));
  return pids === undefined || rows.length === new Set(pids).size ? 0 : 1;
}

function status(words: readonly string[]): number {
  const { json } = parse(words, { json: { type: "boolean" } });
  const report = nativeStatus();
  if (json === true) printJson(report);
  else {
    const { error, ...facts } = report;
    print(Object.entries(facts).map(([key, value]) => `${key.padEnd(8)} ${escapeControls(value)}`));
    if (error !== undefined) print([`error    ${error.code}: ${error.message}`]);
  }
  return report.state === "ready" ? 0 : 3;
}

function columns(rows: readonly ProcessSnapshot[]): Column[] {
  const column = (
    title: string,
    align: Column["align"],
    optional: number,
    cell: (row: ProcessSnapshot) => string | number | undefined,
  ): Column => ({ title, align, optional, cells: rows.map((row) => String(cell(row) ?? "-")) });
  return [
    column("PID", "right", 0, (row) => row.pid),
    column("PPID", "right", 1, (row) => row.parentPid),
    column("PGID", "right", 4, (row) => row.processGroupId),
    column("SID", "right", 5, (row) => row.sessionId),
    column("UID", "right", 3, (row) => row.uid),
    column("OWNER", "left", 6, (row) => row.owner),
    column("STATE", "left", 2, stateOf),
    column("STARTED", "left", 7, (row) => row.identity && localTime(row.identity.startTimeMicros)),
    column("NAME", "left", 0, (row) => row.name === undefined ? undefined : escapeControls(row.name)),
  ];
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

type OptionTable = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

function parse(words: readonly string[], options: OptionTable): Record<string, unknown> {
  try {
    return parseArgs({ args: [...words], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function parsePid(word: string): number {
  const pid = /^\d{1,10}$/.test(word) ? Number(word) : NaN;
  if (!(pid < 2 ** 32)) throw new UsageError(`"${word}" is no pid`);
  return pid;
}

function print(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
}

/** JSON escapes C0 by itself; DEL and C1 can steer a terminal too. */
function printJson(value: unknown): void {
  const text = JSON.stringify(value, null, 2).replace(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
  process.stdout.write(`${text}\n`);
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(); // the reader has seen enough
  throw error;
});

try {
  process.exitCode = main(process.argv.slice(2));
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`proc-safe: ${escapeControls(error.message)}\n\n${HELP}`);
    process.exitCode = 2;
  } else if (error instanceof ProcSafeError) {
    process.stderr.write(`proc-safe: ${error.code}: ${escapeControls(error.message)}\n`);
    process.exitCode = 3;
  } else {
    throw error;
  }
}
