// Columns to rows; native/addon/src/pack.rs is the other half and must change together with this.

import { COLUMNS } from "./native.js";
import type { PackedCensus, PackedCommands } from "./native.js";
import type { ProcessCommand, ProcessIdentity, ProcessOwner, ProcessSnapshot, ProcessState } from "./types.js";

// `bits` of a row.
const OWNER = 3;
const STATE_SHIFT = 2;
const STATE = 3;
const EXITING = 1 << 4;
const PARENT = 1 << 5;
const GROUP = 1 << 6;
const SESSION = 1 << 7;
const UID = 1 << 8;
const NAME = 1 << 9;
const IDENTITY = 1 << 10;
const EXITED = 1 << 11;
const SINCE_BOOT = 1 << 12;
const UNIQUE_ID = 1 << 13;

const OWNERS: readonly ProcessOwner[] = ["unknown", "same", "different"];
const STATES: readonly (ProcessState | undefined)[] = [undefined, "running", "stopped", "zombie"];

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** What all identities of one call share. */
export type Origin = Pick<
  ProcessIdentity,
  "startTimeResolutionMicros" | "bootId" | "pidNamespace" | "timeNamespace"
>;

/** The rows of a census, frozen, in the order of the columns. */
export function decodeRows(
  [numbers, names, origin, commands]: PackedCensus,
  keys: readonly string[] = [],
): readonly ProcessSnapshot[] {
  const shared = decodeOrigin(origin);
  const rows: ProcessSnapshot[] = [];
  let nameStart = 0;
  for (let at = 0; at < numbers.length; at += COLUMNS) {
    const nameEnd = numbers[at + 6]!;
    rows.push(rowAt(numbers, at, names.slice(nameStart, nameEnd), shared));
    nameStart = nameEnd;
  }
  if (commands) {
    for (const [index, command] of commandsOf(commands, keys)) {
      rows[index] = Object.freeze({ ...rows[index]!, command });
    }
  }
  return Object.freeze(rows);
}

/** The only command, frozen. */
export function decodeCommand(packed: PackedCommands, keys: readonly string[]): ProcessCommand {
  for (const [, command] of commandsOf(packed, keys)) return command;
  throw new TypeError("there is no command");
}

// `bits` of a command.
const EXECUTABLE = 1;
const LINE = 1 << 1;
const WORKING_DIRECTORY = 1 << 2;

function* commandsOf(
  [numbers, texts]: PackedCommands,
  keys: readonly string[],
): Generator<[row: number, command: ProcessCommand]> {
  let at = 0;
  let end = 0;
  const next = (): number => numbers[at++]!;
  const text = (): string => texts.slice(end, (end += next()));
  while (at < numbers.length) {
    const row = next();
    const bits = next();
    const words = next();
    const variables = next();
    const executable = bits & EXECUTABLE ? text() : undefined;
    const commandLine = bits & LINE ? text() : undefined;
    const cwd = bits & WORKING_DIRECTORY ? text() : undefined;
    const argv = Object.freeze(Array.from({ length: words }, text));
    // From entries, so that a variable named __proto__ is one.
    const environment = Object.freeze(Object.fromEntries(Array.from({ length: variables }, () => [keys[next()]!, text()])));
    const command = {
      ...(executable !== undefined && { executable }),
      argv,
      ...(commandLine !== undefined && { commandLine }),
      ...(cwd !== undefined && { cwd }),
      environment,
    };
    yield [row, Object.freeze(command)];
  }
}

/** The identity of the only row, frozen. */
export function decodeIdentity([numbers, , origin]: PackedCensus): ProcessIdentity {
  return identityAt(numbers, 0, decodeOrigin(origin));
}

// A literal with all its keys is one object; adding keys one by one allocates it several times over, which
// a full census pays for in garbage collection. Most rows and identities of Linux have all of these keys.
const WHOLE_ROW = PARENT | GROUP | SESSION | UID | NAME | IDENTITY;

function rowAt(numbers: Float64Array, at: number, name: string, origin: Origin): ProcessSnapshot {
  const bits = numbers[at + 1]!;
  const pid = numbers[at]!;
  const owner = OWNERS[bits & OWNER]!;
  const state = STATES[(bits >> STATE_SHIFT) & STATE];
  if ((bits & (WHOLE_ROW | EXITING)) === WHOLE_ROW && state !== undefined) {
    return Object.freeze({
      pid,
      owner,
      parentPid: numbers[at + 2]!,
      processGroupId: numbers[at + 3]!,
      sessionId: numbers[at + 4]!,
      uid: numbers[at + 5]!,
      name,
      state,
      identity: identityAt(numbers, at, origin),
    });
  }
  const row: Mutable<ProcessSnapshot> = { pid, owner };
  if (bits & PARENT) row.parentPid = numbers[at + 2]!;
  if (bits & GROUP) row.processGroupId = numbers[at + 3]!;
  if (bits & SESSION) row.sessionId = numbers[at + 4]!;
  if (bits & UID) row.uid = numbers[at + 5]!;
  if (bits & NAME) row.name = name;
  if (state !== undefined) row.state = state;
  if (bits & EXITING) row.exiting = true;
  if (bits & IDENTITY) row.identity = identityAt(numbers, at, origin);
  return Object.freeze(row);
}

function identityAt(numbers: Float64Array, at: number, origin: Origin): ProcessIdentity {
  const bits = numbers[at + 1]!;
  const { startTimeResolutionMicros, bootId, pidNamespace, timeNamespace } = origin;
  const pid = numbers[at]!;
  const parentPid = numbers[at + 2]!;
  const startTimeMicros = numbers[at + 7]!;
  const exited = (bits & EXITED) !== 0;
  const plain = (bits & (SINCE_BOOT | UNIQUE_ID)) === SINCE_BOOT && timeNamespace === undefined;
  if (plain && bootId !== undefined && pidNamespace !== undefined) {
    return Object.freeze({
      pid,
      parentPid,
      startTimeMicros,
      startTimeResolutionMicros,
      startTimeSinceBootMicros: numbers[at + 8]!,
      bootId,
      pidNamespace,
      exited,
    });
  }
  const identity: Mutable<ProcessIdentity> = {
    pid,
    parentPid,
    startTimeMicros,
    startTimeResolutionMicros,
    exited,
  };
  if (bits & SINCE_BOOT) identity.startTimeSinceBootMicros = numbers[at + 8]!;
  if (bootId !== undefined) identity.bootId = bootId;
  if (bits & UNIQUE_ID) identity.uniqueId = decimal(numbers[at + 9]!, numbers[at + 10]!);
  if (pidNamespace !== undefined) identity.pidNamespace = pidNamespace;
  if (timeNamespace !== undefined) identity.timeNamespace = timeNamespace;
  return Object.freeze(identity);
}

let lastOrigin: { readonly text: string; readonly origin: Origin } | undefined;

/** Lines; an absent fact is empty. They hardly ever change in the life of a process. */
export function decodeOrigin(text: string): Origin {
  if (lastOrigin?.text === text) return lastOrigin.origin;
  const [resolution, bootId = "", pidNamespace = "", timeNamespace = ""] = text.split("\n");
  const origin = {
    startTimeResolutionMicros: Number(resolution),
    ...(bootId !== "" && { bootId }),
    ...(pidNamespace !== "" && { pidNamespace }),
    ...(timeNamespace !== "" && { timeNamespace }),
  };
  lastOrigin = { text, origin };
  return origin;
}

/** An unsigned 64-bit number from its halves. */
function decimal(upper: number, lower: number): string {
  const number = upper * 2 ** 32 + lower;
  if (Number.isSafeInteger(number)) return String(number);
  return ((BigInt(upper) << 32n) | BigInt(lower)).toString();
}
