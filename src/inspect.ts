// The public entry `proc-safe/inspect`: the census, and what a process runs.

import { checkCommandOptions, checkListOptions, checkPid } from "./arguments.js";
import { decodeCommand, decodeRows } from "./decode.js";
import { readCommand, takeCensus } from "./native.js";
import type { ProcessCommand, ProcessSnapshot } from "./types.js";

export type { ProcessCommand, ProcessIdentity, ProcessOwner, ProcessSnapshot, ProcessState } from "./types.js";

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
  /** Rows have a `command`, where it can be read. */
  readonly includeCommand?: boolean | undefined;
  /**
   * With `includeCommand`: the variables that `command.environment` shall hold, where they are set. No others
   * leave the kernel's answer. A row whose environment may not be read has no `command` then.
   */
  readonly environmentKeys?: readonly string[] | undefined;
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
  const { pids, deadline, visibleOnly, keys } = checkListOptions(options);
  const rows = decodeRows(takeCensus(pids, deadline.remaining(), visibleOnly, keys), keys);
  deadline.remaining();
  return rows;
}

export interface ReadProcessCommandOptions {
  /** The variables that `environment` shall hold, where they are set. No others leave the kernel's answer. */
  readonly environmentKeys?: readonly string[] | undefined;
  /** How long the process may take to answer, in milliseconds; 1,000 without it. */
  readonly timeoutMs?: number | undefined;
}

/**
 * What the process that has the pid runs now: every part of one program of one process. `null` means that no
 * process has the pid, or that it is a zombie or exiting and has no memory image left.
 *
 * The program and the working directory of another user's process may be refused: they are absent keys then. Where
 * variables are asked for and may not be read, the call throws `access-denied`: "not set" was not observed.
 *
 * @throws {ProcSafeError} `access-denied`, `timeout`, `incomplete` where the process executes another program (on
 *   Windows: changes what is read) at every try, `operation-failed` with reason `too-long` for more than 2 MiB of arguments or of environment, and
 *   `invalid-argument`, `helper-unavailable`, `unsupported-platform`.
 */
export function readProcessCommand(pid: number, options?: ReadProcessCommandOptions): ProcessCommand | null {
  const checked = checkPid(pid);
  const { keys, timeoutMs } = checkCommandOptions(options);
  const packed = readCommand(checked, timeoutMs, keys);
  return packed === null ? null : decodeCommand(packed, keys);
}
