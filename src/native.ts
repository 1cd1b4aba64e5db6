// Loads the native binding, once a realm, and nothing else does. There is no weaker fallback:
// without the binding, calls throw.

import { dirname, isAbsolute, join, toNamespacedPath } from "node:path";
import { fileURLToPath } from "node:url";
import { getSystemErrorName } from "node:util";
import { ProcSafeError } from "./errors.js";
import type { ProcSafeErrorCode, ProcSafeErrorReason } from "./errors.js";
import { escapeControls } from "./escape.js";
import { explainLoadFailure, NO_PLACE, refuseCut, VERSION_MISMATCH } from "./load-failure.js";
import type { LoadFailure } from "./load-failure.js";
import { currentTarget } from "./target.js";

/**
 * What crosses the boundary (native/addon/src/pack.rs is the other half): the rows as columns of numbers,
 * all names one behind the other, what all identities share, and the commands where they were asked for.
 */
export type PackedCensus = readonly [numbers: Float64Array, names: string, origin: string, commands?: PackedCommands | null];

/** Commands: numbers that say whose they are and how long each text is, and all texts one behind the other. */
export type PackedCommands = readonly [numbers: Uint32Array, texts: string];

/** One row of `numbers`. */
export const COLUMNS = 11;

interface Failure {
  readonly code: ProcSafeErrorCode;
  readonly message: string;
  readonly pid?: number;
  readonly syscall?: string;
  readonly errno?: number;
  readonly reason?: ProcSafeErrorReason;
}

interface Binding {
  describeBinding(): { version: string; contract: number; supported: boolean };
  takeCensus(
    pids: Uint32Array | undefined,
    timeoutMs: number | undefined,
    visibleOnly: boolean,
    keys: string | undefined,
  ): PackedCensus | Failure;
  readCommand(pid: number, timeoutMs: number, keys: string): PackedCommands | null | Failure;
  readIdentity(pid: number, row: Float64Array): string | null | Failure;
  readOrigin(): string | Failure;
}

/** Of the package. A bundle has no package.json of ours to read it from. */
const VERSION = "0.1.0";
const CONTRACT = 4;
const MODES = ["auto", "require", "off"] as const;

export type NativeMode = (typeof MODES)[number];

interface Loaded {
  readonly path: string;
  readonly version: string;
  readonly supported: boolean;
  readonly binding: Binding;
}

const asked = process.env["PROC_SAFE_NATIVE"] ?? "auto";
const mode = MODES.find((known) => known === asked);

let loaded: Loaded | undefined;
/** Where a bundler has put the binary. */
let chosen: string | undefined;

/**
 * Every process, or the given pids; with their commands if there are `keys`, even none of them. Arguments are
 * checked by the caller.
 */
export function takeCensus(
  pids: Uint32Array | undefined,
  timeoutMs: number | undefined,
  visibleOnly: boolean,
  keys: readonly string[] | undefined,
): PackedCensus {
  return unwrap(binding().takeCensus(pids, timeoutMs, visibleOnly, keys && joinKeys(keys)));
}

/** One command, or `null` for a process that is absent or has no memory image left. */
export function readCommand(pid: number, timeoutMs: number, keys: readonly string[]): PackedCommands | null {
  return unwrap(binding().readCommand(pid, timeoutMs, joinKeys(keys)));
}

/** No name holds a NUL. */
function joinKeys(keys: readonly string[]): string {
  return keys.map((key) => `${key}\0`).join("");
}

const identityRow = new Float64Array(COLUMNS);
/** That of the identity in the row. */
let identityOrigin = "";

/**
 * A census of one row that holds an identity, or `null` for an absent process. The row is overwritten by
 * the next call. Arguments are checked by the caller.
 */
export function readIdentity(pid: number): PackedCensus | null {
  const origin = unwrap(binding().readIdentity(pid, identityRow));
  if (origin === null) return null;
  if (origin !== "") identityOrigin = origin;
  return [identityRow, "", identityOrigin];
}

/** What all identities of this process share. */
export function readOrigin(): string {
  return unwrap(binding().readOrigin());
}

/** Turns the failure of a native call into the public error. */
export function unwrap<T extends PackedCensus | PackedCommands | string | null>(result: T | Failure): T {
  if (!isFailure(result)) return result;
  const { code, message, pid, syscall, errno, reason } = result;
  const name = errno === undefined ? undefined : errnoName(errno);
  const text = name === undefined ? message : `${message}: ${name}`;
  throw new ProcSafeError(code, escapeControls(text), {
    details: {
      ...(pid !== undefined && { pid }),
      ...(syscall !== undefined && { syscall }),
      ...(name !== undefined && { errno: name }),
      ...(reason !== undefined && { reason }),
    },
  });
}

function isFailure(result: PackedCensus | PackedCommands | string | null | Failure): result is Failure {
  return typeof result === "object" && result !== null && !Array.isArray(result);
}

function errnoName(errno: number): string {
  const name = getSystemErrorName(-errno);
  return /^E[A-Z0-9]+$/.test(name) ? name : `errno ${errno}`;
}

function binding(): Binding {
  const result = load();
  if (result instanceof ProcSafeError) throw result;
  return result.binding;
}

/** Loads on first use. A failure is not remembered: it may be one of the moment, such as EMFILE. */
export function load(): Loaded | ProcSafeError {
  try {
    return (loaded ??= loadBinding());
  } catch (error) {
    return error instanceof ProcSafeError ? error : unusable("the loader failed", error);
  }
}

function loadBinding(): Loaded {
  if (mode === undefined) {
    const text = `PROC_SAFE_NATIVE is "${escapeControls(asked)}", not one of ${MODES.join(", ")}`;
    throw new ProcSafeError("invalid-argument", text);
  }
  if (mode === "off") {
    const text = "PROC_SAFE_NATIVE is off: the native binding is not loaded";
    throw new ProcSafeError("helper-unavailable", text, { details: { reason: "switched-off" } });
  }
  const target = currentTarget();
  const path = bindingPath(target);
  if (path === undefined) throw unusable(`no native binding for ${target}`, undefined, NO_PLACE);
  const found = loadFile(path, target);
  const { version, contract, supported } = found.describeBinding?.() ?? { version: "none", contract: 0, supported: false };
  if (version !== VERSION || contract !== CONTRACT) {
    const text = `${path} is of version ${version} (contract ${contract}), this package of ${VERSION} (contract ${CONTRACT})`;
    throw unusable(text, undefined, VERSION_MISMATCH);
  }
  return { path, version, supported, binding: found as Binding };
}

/** Whatever the file exports: it may be no binding of ours. */
function loadFile(path: string, target: string): Partial<Binding> {
  try {
    refuseCut(path);
    const module: { exports: Partial<Binding> } = { exports: {} };
    process.dlopen(module, toNamespacedPath(path)); // bundlers rewrite a require of any kind
    return module.exports;
  } catch (cause) {
    throw unusable(`no usable native binding for ${target}`, cause, explainLoadFailure(path, target, cause));
  }
}

function unusable(what: string, cause: unknown, failure?: LoadFailure): ProcSafeError {
  const why = cause instanceof Error ? cause.message : undefined;
  const text = [what, failure?.advice, why].filter((part) => part !== undefined).join(": ");
  return new ProcSafeError("helper-unavailable", escapeControls(text), {
    ...(cause !== undefined && { cause }),
    ...(failure !== undefined && { details: { reason: failure.reason } }),
  });
}

/** `undefined` where the code is in no file, as in a bundle for CommonJS. */
function bindingPath(target: string): string | undefined {
  if (chosen !== undefined) return chosen;
  const here: string | undefined = import.meta.url;
  return here?.startsWith("file:") ? join(dirname(fileURLToPath(here)), "../prebuilds", `${target}.node`) : undefined;
}

/**
 * Names the file to load instead of the package's own, for bundles and single-file executables that carry the
 * binary elsewhere: an absolute path or a file URL. Before the first use in this realm; each Worker is a realm
 * of its own.
 *
 * @throws {ProcSafeError} `invalid-argument` for anything else, or if another file is loaded already.
 */
export function setNativeBinding(path: string | URL): void {
  const named = absolutePath(path);
  if (loaded !== undefined && loaded.path !== named) {
    throw new ProcSafeError("invalid-argument", escapeControls(`the native binding is loaded already, from ${loaded.path}`));
  }
  chosen = named;
}

function absolutePath(path: unknown): string {
  try {
    if (path instanceof URL) return fileURLToPath(path);
    if (typeof path === "string" && isAbsolute(path) && !path.includes("\0")) return path;
  } catch (cause) {
    throw new ProcSafeError("invalid-argument", "the native binding is at a file URL or at no URL", { cause });
  }
  throw new ProcSafeError("invalid-argument", "the native binding is named by an absolute path or a file URL");
}

/** How the binding stands. `state` is `disabled` exactly if `PROC_SAFE_NATIVE` is `off`. */
export interface NativeStatus {
  /** `PROC_SAFE_NATIVE` as it was at import; `invalid` if it is none of the three. */
  readonly mode: NativeMode | "invalid";
  readonly state: "ready" | "unavailable" | "disabled";
  /** The binary that this platform needs, such as `linux-x64-gnu`. */
  readonly target: string;
  /** The file that was loaded, or that could not be. */
  readonly path?: string;
  /** The version that the loaded file was built from. */
  readonly version?: string;
  /** Why it is not ready. */
  readonly error?: { readonly code: ProcSafeErrorCode; readonly message: string; readonly reason?: ProcSafeErrorReason };
}

/** Says whether the native binding is usable, loading it unless it is switched off. Never throws. */
export function nativeStatus(): NativeStatus {
  const common = { mode: mode ?? ("invalid" as const), target: currentTarget() };
  const result = load();
  if (!(result instanceof ProcSafeError)) {
    const { path, version } = result;
    return Object.freeze({ ...common, state: "ready" as const, path, version });
  }
  const { code, message, details } = result;
  const error = Object.freeze({ code, message, ...(details?.reason !== undefined && { reason: details.reason }) });
  if (mode === "off" || mode === undefined) {
    return Object.freeze({ ...common, state: mode === "off" ? ("disabled" as const) : ("unavailable" as const), error });
  }
  const path = bindingPath(common.target);
  return Object.freeze({ ...common, state: "unavailable" as const, ...(path !== undefined && { path }), error });
}

/** Whether the binding is loaded and this platform has a backend. Never throws. */
export function isSupported(): boolean {
  const result = load();
  return !(result instanceof ProcSafeError) && result.supported;
}

if (mode === "require") {
  const result = load();
  if (result instanceof ProcSafeError) throw result;
}
