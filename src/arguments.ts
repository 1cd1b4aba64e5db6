// Checks everything a caller passes before any native call. Each option and each element is read
// once, so what was checked is what is used.

import type { Birth } from "./births.js";
import { ProcSafeError } from "./errors.js";
import { escapeControls } from "./escape.js";
import type { ProcessIdentity, ProcessSnapshot } from "./types.js";

/** What a caller may ask of a census, checked. */
export interface ListRequest {
  readonly pids: Uint32Array | undefined;
  readonly deadline: Deadline;
  readonly visibleOnly: boolean;
  /** Rows shall have commands, with these variables. */
  readonly keys: readonly string[] | undefined;
}

/** The end of a call, by the clock of its beginning. */
export class Deadline {
  readonly #end: number;

  constructor(timeoutMs: number | undefined) {
    this.#end = performance.now() + (timeoutMs ?? Infinity);
  }

  /** Milliseconds that are left; `undefined` without an end. Throws when none are. */
  remaining(): number | undefined {
    const left = this.#end - performance.now();
    if (left <= 0) throw new ProcSafeError("timeout", "the deadline passed before the answer was whole");
    return left === Infinity ? undefined : left;
  }
}

const LIST_OPTIONS = ["pids", "timeoutMs", "visibility", "includeCommand", "environmentKeys"];
const COMMAND_OPTIONS = ["environmentKeys", "timeoutMs"];
const ANCESTRY_OPTIONS = ["maxDepth", "throughPid"];

const GREATEST_PID = 2 ** 32 - 1;
/** Far more than the pids of any kernel (Linux has at most 2²²); bounds the memory of one call. */
const MOST_PIDS = 2 ** 24;
/** Elements between two looks at the clock. */
const PIDS_A_LOOK = 4096;

export function checkListOptions(options: unknown): ListRequest {
  if (options === undefined) {
    return { pids: undefined, deadline: new Deadline(undefined), visibleOnly: false, keys: undefined };
  }
  checkNames(options, LIST_OPTIONS);
  const deadline = new Deadline(checkTimeout(option(options, "timeoutMs")));
  const visibleOnly = checkVisibility(option(options, "visibility"));
  const includeCommand = option(options, "includeCommand");
  if (includeCommand !== undefined && typeof includeCommand !== "boolean") {
    throw invalid("includeCommand must be true or false");
  }
  const asked = option(options, "environmentKeys");
  if (asked !== undefined && includeCommand !== true) throw invalid("environmentKeys need includeCommand");
  const keys = includeCommand === true ? checkKeys(asked) : undefined;
  return { pids: checkPids(option(options, "pids"), deadline), deadline, visibleOnly, keys };
}

/** How long a process may take to show its command. */
const DEFAULT_PATIENCE_MS = 1000;

export function checkCommandOptions(options: unknown): { keys: readonly string[]; timeoutMs: number } {
  if (options === undefined) return { keys: [], timeoutMs: DEFAULT_PATIENCE_MS };
  checkNames(options, COMMAND_OPTIONS);
  const timeoutMs = checkTimeout(option(options, "timeoutMs")) ?? DEFAULT_PATIENCE_MS;
  return { keys: checkKeys(option(options, "environmentKeys")), timeoutMs };
}

/** More, and longer, than anyone asks for; bounds what is compared with each variable of each process. */
const MOST_KEYS = 1024;
const LONGEST_KEY = 1024;

/** Names of variables, each once. */
function checkKeys(keys: unknown): readonly string[] {
  if (keys === undefined) return [];
  if (!isArray(keys)) throw invalid("environmentKeys must be an array");
  const length = touch("the length of environmentKeys", () => keys.length);
  if (!Number.isInteger(length) || length < 0 || length > MOST_KEYS) {
    throw invalid(`environmentKeys must hold at most ${MOST_KEYS} names`);
  }
  const checked = new Set<string>();
  for (let index = 0; index < length; index++) {
    const key: unknown = touch("an element of environmentKeys", () => keys[index]);
    if (!isVariableName(key)) {
      throw invalid(`a key must be a well-formed string of 1 to ${LONGEST_KEY} characters without "=" and NUL`);
    }
    checked.add(key);
  }
  return [...checked];
}

function isVariableName(key: unknown): key is string {
  return typeof key === "string" && key.length > 0 && key.length <= LONGEST_KEY && !/[=\0\p{Surrogate}]/u.test(key);
}

/** Far more than a chain has; bounds a call where nobody thought of a bound. */
const DEFAULT_DEPTH = 1024;

export function checkAncestryOptions(options: unknown): { maxDepth: number; throughPid: number | undefined } {
  if (options === undefined) return { maxDepth: DEFAULT_DEPTH, throughPid: undefined };
  checkNames(options, ANCESTRY_OPTIONS);
  const maxDepth = option(options, "maxDepth");
  if (maxDepth !== undefined && !(isSafeInteger(maxDepth) && maxDepth >= 1)) {
    throw invalid("maxDepth must be an integer above 0");
  }
  const throughPid = option(options, "throughPid");
  return { maxDepth: maxDepth ?? DEFAULT_DEPTH, throughPid: throughPid === undefined ? undefined : checkPid(throughPid) };
}

function checkNames(options: unknown, known: readonly string[]): asserts options is object {
  if (!isPlainObject(options)) throw invalid("options must be a plain object");
  for (const key of touch("the options", () => Reflect.ownKeys(options))) {
    if (typeof key === "string" && !known.includes(key)) {
      throw invalid(`there is no option "${escapeControls(key.slice(0, 100))}"`);
    }
  }
}

/**
 * An object of own keys: from a literal, JSON or another realm. What an instance of a class inherits would be
 * overlooked, so it is refused.
 */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null || isArray(value)) return false;
  return touch("a prototype", () => {
    const prototype: unknown = Object.getPrototypeOf(value);
    return prototype === null || Object.getPrototypeOf(prototype) === null;
  });
}

/** Reads an option once; what somebody added to Object.prototype is none. */
function option(options: object, name: string): unknown {
  return touch(`the option ${name}`, () => {
    const value: unknown = Reflect.get(options, name);
    const prototype: unknown = Object.getPrototypeOf(options);
    const inherited = typeof prototype === "object" && prototype !== null && Object.hasOwn(prototype, name);
    return inherited && !Object.hasOwn(options, name) ? undefined : value;
  });
}

export function checkPid(pid: unknown): number {
  if (!isPid(pid)) throw invalid("a pid must be an integer from 0 to 4294967295");
  return pid;
}

/** Longer than any text in an identity; bounds what a saved file can make us compare. */
const LONGEST_TEXT = 256;

/**
 * An identity, perhaps from a file: own keys only, so that no prototype adds a fact. Keys of a newer version
 * are left out.
 */
export function checkIdentity(value: unknown): ProcessIdentity {
  if (typeof value !== "object" || value === null || isArray(value)) throw invalid("an identity must be an object");
  const fact = (key: keyof ProcessIdentity): unknown => touch(`${key} of an identity`, () => own(value, key));
  const integer = (key: keyof ProcessIdentity, least: number): number => {
    const number = fact(key);
    if (!Number.isSafeInteger(number) || (number as number) < least) throw invalid(`${key} of an identity must be an integer`);
    return number as number;
  };
  const optional = <T>(key: keyof ProcessIdentity, check: (found: unknown) => found is T): T | undefined => {
    const found = fact(key);
    if (isOptional(check, found)) return found;
    throw invalid(`${key} of an identity is not as it was read`);
  };
  const pids = [fact("pid"), fact("parentPid")];
  if (!pids.every(isPid)) throw invalid("pid and parentPid of an identity must be pids");
  const [pid = 0, parentPid = 0] = pids;
  const exited = fact("exited");
  if (typeof exited !== "boolean") throw invalid("exited of an identity must be true or false");
  const identity = {
    pid,
    parentPid,
    startTimeMicros: integer("startTimeMicros", -Number.MAX_SAFE_INTEGER),
    startTimeResolutionMicros: integer("startTimeResolutionMicros", 1),
    startTimeSinceBootMicros: optional("startTimeSinceBootMicros", isSafeInteger),
    bootId: optional("bootId", isShortText),
    uniqueId: optional("uniqueId", isDecimal),
    pidNamespace: optional("pidNamespace", isDecimal),
    timeNamespace: optional("timeNamespace", isDecimal),
    exited,
  };
  // Without a prototype: an absent fact stays absent whatever somebody did to Object.prototype.
  const facts = Object.entries(identity).filter(([, known]) => known !== undefined);
  return Object.assign(Object.create(null) as ProcessIdentity, Object.fromEntries(facts));
}

/** What trees need of a row; the row itself is only handed on. */
export interface RowFacts {
  readonly row: ProcessSnapshot;
  readonly pid: number;
  readonly parentPid: number | undefined;
  readonly processGroupId: number | undefined;
  readonly sessionId: number | undefined;
  readonly birth: Birth | undefined;
  /** As it was read, for `checkIdentity`. */
  readonly identity: unknown;
}

/** The rows of one census, perhaps from a file, in ascending order of pid. */
export function checkRows(rows: unknown): RowFacts[] {
  if (!isArray(rows)) throw invalid("rows must be an array");
  const clean = [...ROW_KEYS, ...BIRTH_KEYS].every((key) => !(key in Object.prototype));
  const checked = touch("the rows", () => [...rows].map((row) => readRow(row, clean))).map(checkRow);
  if (checked.some(({ pid }, index) => index > 0 && pid < checked[index - 1]!.pid)) checked.sort((a, b) => a.pid - b.pid);
  const twice = checked.find(({ pid }, index) => index > 0 && pid === checked[index - 1]!.pid);
  if (twice !== undefined) throw invalid(`pid ${twice.pid} has two rows: rows must be of one census`);
  return checked;
}

type Unchecked<T> = { readonly [Key in keyof T]: unknown };

const ROW_KEYS = ["pid", "parentPid", "processGroupId", "sessionId", "identity"] as const;
const BIRTH_KEYS = ["startTimeMicros", "startTimeSinceBootMicros", "uniqueId", "timeNamespace"] as const;

/** Reads each fact once, own keys only. */
function readRow(row: unknown, clean: boolean): Unchecked<RowFacts> {
  const { pid, parentPid, processGroupId, sessionId, identity } = readable(row, ROW_KEYS, clean);
  const birth = identity === undefined ? undefined : readBirth(identity, clean);
  return { row, pid, parentPid, processGroupId, sessionId, birth, identity };
}

function readBirth(identity: unknown, clean: boolean): Unchecked<Birth> {
  const { startTimeMicros, startTimeSinceBootMicros, uniqueId, timeNamespace } = readable(identity, BIRTH_KEYS, clean);
  return { startTimeMicros, startTimeSinceBootMicros, uniqueId, timeNamespace };
}

/**
 * A value whose keys may be read: it itself where it is plain and nobody has put one of them on Object.prototype,
 * since to ask of each key whether it is an own one costs as much as all the rest of a tree.
 */
function readable<Key extends string>(value: unknown, keys: readonly Key[], clean: boolean): Readonly<Record<Key, unknown>> {
  if (clean && typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    return value as Record<Key, unknown>;
  }
  return Object.fromEntries(keys.map((key) => [key, own(value, key)])) as Record<Key, unknown>;
}

function own(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}

function checkRow(facts: Unchecked<RowFacts>): RowFacts {
  const { pid, parentPid, processGroupId, sessionId, birth } = facts;
  if (!isPid(pid)) throw invalid("a row must be an object with a pid");
  if (!isOptional(isPid, parentPid) || !isOptional(isPid, processGroupId) || !isOptional(isPid, sessionId)) {
    throw invalid(`the row of pid ${pid} has a parent, a group or a session that is no pid`);
  }
  if (birth !== undefined && !isBirth(birth as Unchecked<Birth>)) {
    throw invalid(`the identity in the row of pid ${pid} is not as it was read`);
  }
  return facts as RowFacts;
}

function isBirth({ startTimeMicros, startTimeSinceBootMicros, uniqueId, timeNamespace }: Unchecked<Birth>): boolean {
  return (
    isSafeInteger(startTimeMicros) &&
    isOptional(isSafeInteger, startTimeSinceBootMicros) &&
    isOptional(isDecimal, uniqueId) &&
    isOptional(isDecimal, timeNamespace)
  );
}

function isOptional<T>(check: (value: unknown) => value is T, value: unknown): value is T | undefined {
  return value === undefined || check(value);
}

function isSafeInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isShortText(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= LONGEST_TEXT;
}

/** An unsigned 64-bit number as text, spelled in one way only. */
function isDecimal(value: unknown): value is string {
  return isShortText(value) && /^(?:0|[1-9]\d{0,19})$/.test(value);
}

function checkPids(pids: unknown, deadline: Deadline): Uint32Array | undefined {
  if (pids === undefined) return undefined;
  if (!isArray(pids)) throw invalid("pids must be an array");
  const length = touch("the length of pids", () => pids.length);
  if (!Number.isInteger(length) || length < 0 || length > MOST_PIDS) {
    throw invalid(`pids must hold at most ${MOST_PIDS} numbers`);
  }
  const checked = new Uint32Array(length);
  for (let index = 0; index < length; index++) {
    if (index > 0 && index % PIDS_A_LOOK === 0) deadline.remaining();
    checked[index] = checkPid(touch("an element of pids", () => pids[index]));
  }
  return checked;
}

function checkTimeout(timeoutMs: unknown): number | undefined {
  if (timeoutMs === undefined) return undefined;
  if (typeof timeoutMs !== "number" || !Number.isFinite(timeoutMs) || timeoutMs <= 0) {
    throw invalid("timeoutMs must be a finite number above 0");
  }
  return timeoutMs;
}

function checkVisibility(visibility: unknown): boolean {
  if (visibility === undefined || visibility === "all") return false;
  if (visibility === "visible") return true;
  throw invalid('visibility must be "all" or "visible"');
}

function isPid(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= GREATEST_PID;
}

function isArray(value: unknown): value is readonly unknown[] {
  return touch("a revoked Proxy", () => Array.isArray(value));
}

/** Runs a read that may run a caller's getter or Proxy trap. */
function touch<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw invalid(`reading ${what} threw`, cause);
  }
}

function invalid(message: string, cause?: unknown): ProcSafeError {
  return new ProcSafeError("invalid-argument", message, cause === undefined ? {} : { cause });
}
