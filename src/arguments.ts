// Checks everything a caller passes before any native call. Each option and each element is read
// once, so what was checked is what is used.

import { ProcSafeError } from "./errors.js";
import { escapeControls } from "./escape.js";
import type { ProcessIdentity } from "./types.js";

/** What a caller may ask of a census, checked. */
export interface ListRequest {
  readonly pids: Uint32Array | undefined;
  readonly deadline: Deadline;
  readonly visibleOnly: boolean;
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

const LIST_OPTIONS = ["pids", "timeoutMs", "visibility"];

const GREATEST_PID = 2 ** 32 - 1;
/** Far more than the pids of any kernel (Linux has at most 2²²); bounds the memory of one call. */
const MOST_PIDS = 2 ** 24;
/** Elements between two looks at the clock. */
const PIDS_A_LOOK = 4096;

export function checkListOptions(options: unknown): ListRequest {
  if (options === undefined) return { pids: undefined, deadline: new Deadline(undefined), visibleOnly: false };
  if (!isPlainObject(options)) throw invalid("options must be a plain object");
  for (const key of touch("the options", () => Reflect.ownKeys(options))) {
    if (typeof key === "string" && !LIST_OPTIONS.includes(key)) {
      throw invalid(`there is no option "${escapeControls(key.slice(0, 100))}"`);
    }
  }
  const deadline = new Deadline(checkTimeout(option(options, "timeoutMs")));
  const visibleOnly = checkVisibility(option(options, "visibility"));
  return { pids: checkPids(option(options, "pids"), deadline), deadline, visibleOnly };
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
  const fact = (key: keyof ProcessIdentity): unknown =>
    touch(`${key} of an identity`, () => (Object.hasOwn(value, key) ? (Reflect.get(value, key) as unknown) : undefined));
  const integer = (key: keyof ProcessIdentity, least: number): number => {
    const number = fact(key);
    if (!Number.isSafeInteger(number) || (number as number) < least) throw invalid(`${key} of an identity must be an integer`);
    return number as number;
  };
  const optional = <T>(key: keyof ProcessIdentity, check: (found: unknown) => found is T): T | undefined => {
    const found = fact(key);
    if (found === undefined || check(found)) return found as T | undefined;
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
