// The one error class and its closed sets of codes and reasons.

/** What kind of failure it is; the set is closed. */
export type ProcSafeErrorCode =
  | "invalid-argument"
  | "helper-unavailable"
  | "unsupported-platform"
  | "access-denied"
  | "incomplete"
  | "timeout"
  | "operation-failed";

/**
 * What is behind a code; the set is closed. docs/errors.md says what each one means for a caller.
 */
export type ProcSafeErrorReason =
  | "visibility-policy"
  | "own-pid-missing"
  | "cut-short"
  | "unstable-pid"
  | "malformed-record"
  | "too-long"
  | "translated"
  | "procfs-unavailable"
  | "foreign-procfs"
  | "panic"
  | "switched-off"
  | "unsupported-target"
  | "binary-missing"
  | "binary-corrupt"
  | "binary-unusable"
  | "wrong-architecture"
  | "wrong-libc"
  | "libc-too-old"
  | "addons-disabled"
  | "version-mismatch";

export interface ProcSafeErrorDetails {
  /** The process that was asked for. */
  readonly pid?: number;
  /** The system call that failed. */
  readonly syscall?: string;
  /** Its errno by name, such as `"EMFILE"`. */
  readonly errno?: string;
  readonly reason?: ProcSafeErrorReason;
}

/** Every failure of this library. Codes are stable; messages are for people and may change. */
export class ProcSafeError extends Error {
  override readonly name = "ProcSafeError";
  readonly code: ProcSafeErrorCode;
  declare readonly details?: ProcSafeErrorDetails; // absent where there are none

  constructor(
    code: ProcSafeErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly details?: ProcSafeErrorDetails } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    if (options.details !== undefined) this.details = Object.freeze({ ...options.details });
  }
}
