// The public entry `proc-safe/identity`: which process a pid is.

import { checkPid } from "./arguments.js";
import { decodeIdentity } from "./decode.js";
import { readIdentity } from "./native.js";
import type { ProcessIdentity } from "./types.js";

export { isSupported } from "./native.js";
export type { ProcessIdentity } from "./types.js";

/**
 * Says which process a pid is now: keep the answer, and a later answer for the same pid tells
 * whether it is still that process. `null` means that the kernel proved that no process has this pid;
 * a number that is only a thread's is no process.
 *
 * @throws {ProcSafeError} `access-denied` where a process has the pid but may not be described
 *   (`details.reason` is `visibility-policy` where it is hidden), `incomplete` where the pid changed
 *   hands at every try, and `invalid-argument`, `helper-unavailable`, `unsupported-platform`,
 *   `operation-failed`.
 */
export function readProcessIdentity(pid: number): ProcessIdentity | null {
  const packed = readIdentity(checkPid(pid));
  return packed === null ? null : decodeIdentity(packed);
}
