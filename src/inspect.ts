// The public entry `proc-safe/inspect`: the census.

import { checkListOptions } from "./arguments.js";
import { decodeRows } from "./decode.js";
import { takeCensus } from "./native.js";
import type { ProcessSnapshot } from "./types.js";

export type { ProcessIdentity, ProcessOwner, ProcessSnapshot, ProcessState } from "./types.js";

export interface ListProcessesOptions {
  /** Only these processes. A pid that is absent yields no row; a duplicate yields one. */
  readonly pids?: readonly number[] | undefined;
  /** Bounds the whole call, in milliseconds. Without it there is no bound. */
  readonly timeoutMs?: number | undefined;
  /**
   * What a census without `pids` does where a mount option of /proc (`hidepid`, proc(5)) hides
   * processes from the caller: `"all"`, the default, throws `incomplete`; `"visible"` answers with
   * the processes that may be seen.
   */
  readonly visibility?: "all" | "visible" | undefined;
}

/**
 * Takes a census of the processes in the caller's pid namespace.
 *
 * The answer is whole or the call throws; the caller's own pid is always in a full census. Rows are
 * in ascending order of pid, and rows and array are frozen plain data. A process that lived through
 * the whole call is in it; one that was born or reaped meanwhile may be.
 *
 * @throws {ProcSafeError} `invalid-argument`, `helper-unavailable`, `unsupported-platform`,
 *   `incomplete`, `timeout`, `access-denied`, `operation-failed`.
 */
export function listProcesses(options?: ListProcessesOptions): readonly ProcessSnapshot[] {
  const { pids, deadline, visibleOnly } = checkListOptions(options);
  const rows = decodeRows(takeCensus(pids, deadline.remaining(), visibleOnly));
  deadline.remaining();
  return rows;
}
