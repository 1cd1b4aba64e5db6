// Columns to rows; native/addon/src/pack.rs is the other half and must change together with this.

import type { PackedCensus } from "./native.js";
import type { ProcessIdentity, ProcessOwner, ProcessSnapshot, ProcessState } from "./types.js";

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

const NUMBERS = 9;
const TIMES = 2;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** The rows of a census, frozen, in the order of the columns. */
export function decodeRows(packed: PackedCensus): readonly ProcessSnapshot[] {
  const { numbers, names } = packed;
  const rows: ProcessSnapshot[] = [];
  let nameStart = 0;
  for (let at = 0, index = 0; at < numbers.length; at += NUMBERS, index++) {
    const bits = numbers[at + 1]!;
    const row: Mutable<ProcessSnapshot> = { pid: numbers[at]!, owner: OWNERS[bits & OWNER]! };
    if (bits & PARENT) row.parentPid = numbers[at + 2]!;
    if (bits & GROUP) row.processGroupId = numbers[at + 3]!;
    if (bits & SESSION) row.sessionId = numbers[at + 4]!;
    if (bits & UID) row.uid = numbers[at + 5]!;
    const nameEnd = numbers[at + 6]!;
    if (bits & NAME) row.name = names.slice(nameStart, nameEnd);
    nameStart = nameEnd;
    const state = STATES[(bits >> STATE_SHIFT) & STATE];
    if (state !== undefined) row.state = state;
    if (bits & EXITING) row.exiting = true;
    if (bits & IDENTITY) row.identity = decodeIdentity(packed, index);
    rows.push(Object.freeze(row));
  }
  return Object.freeze(rows);
}

/** The identity of one row, frozen. */
export function decodeIdentity(packed: PackedCensus, index: number): ProcessIdentity {
  const { numbers, times } = packed;
  const at = index * NUMBERS;
  const bits = numbers[at + 1]!;
  const identity: Mutable<ProcessIdentity> = {
    pid: numbers[at]!,
    parentPid: numbers[at + 2]!,
    startTimeMicros: times[index * TIMES]!,
    startTimeResolutionMicros: packed.startTimeResolution,
    exited: (bits & EXITED) !== 0,
  };
  if (bits & SINCE_BOOT) identity.startTimeSinceBootMicros = times[index * TIMES + 1]!;
  if (packed.bootId !== undefined) identity.bootId = packed.bootId;
  if (bits & UNIQUE_ID) identity.uniqueId = decimal(numbers[at + 7]!, numbers[at + 8]!);
  if (packed.pidNamespace !== undefined) identity.pidNamespace = packed.pidNamespace;
  if (packed.timeNamespace !== undefined) identity.timeNamespace = packed.timeNamespace;
  return Object.freeze(identity);
}

/** An unsigned 64-bit number from its halves. */
function decimal(upper: number, lower: number): string {
  return ((BigInt(upper) << 32n) | BigInt(lower)).toString();
}
