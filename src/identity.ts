// The public entry `proc-safe/identity`: which process a pid is.

import { checkIdentity, checkPid } from "./arguments.js";
import { decodeIdentity, decodeOrigin } from "./decode.js";
import { ProcSafeError } from "./errors.js";
import { readIdentity, readOrigin } from "./native.js";
import type { BootIdentity, IdentityComparison, IdentityState, ProcessIdentity } from "./types.js";

export { isSupported } from "./native.js";
export type { BootIdentity, IdentityComparison, IdentityState, ProcessIdentity } from "./types.js";

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

/**
 * Says whether two identities are of one process; either may come from a file. `parentPid` and `exited`,
 * which change in a life, are not compared. `unknown` means that nothing in them decides: read in different
 * pid namespaces or time namespaces, or one of them without a boot.
 *
 * Without a `uniqueId` on both sides, equal start ticks are `same`, which is wrong only where a pid comes
 * round within one tick: by `set_tid`, or in a namespace whose `pid_max` is below about 400.
 *
 * @throws {ProcSafeError} `invalid-argument` for what is no identity.
 */
export function compareIdentities(a: ProcessIdentity, b: ProcessIdentity): IdentityComparison {
  return compare(checkIdentity(a), checkIdentity(b));
}

function compare(a: ProcessIdentity, b: ProcessIdentity): IdentityComparison {
  if (a.bootId !== undefined && b.bootId !== undefined && a.bootId !== b.bootId) return "different";
  // One process has a pid in each namespace that can see it, so these say nothing of each other.
  if (a.pidNamespace !== b.pidNamespace) return "unknown";
  if (a.pid !== b.pid) return "different";
  if (a.bootId !== b.bootId) return "unknown";
  if (a.uniqueId !== undefined && b.uniqueId !== undefined) return sameIf(a.uniqueId === b.uniqueId);
  if (a.startTimeSinceBootMicros !== undefined && b.startTimeSinceBootMicros !== undefined) {
    if (a.timeNamespace !== b.timeNamespace) return "unknown";
    return sameIf(a.startTimeSinceBootMicros === b.startTimeSinceBootMicros);
  }
  return sameIf(a.startTimeMicros === b.startTimeMicros);
}

function sameIf(equal: boolean): IdentityComparison {
  return equal ? "same" : "different";
}

/**
 * Says what became of the process of a kept identity, which may come from a file, from before a reboot or from
 * another container.
 *
 * - `live`: it is there, perhaps exiting.
 * - `exited`: it is there as a zombie.
 * - `reused`: its pid is another process's now.
 * - `gone`: no process has its pid.
 * - `unknown`: it may or may not be there: the identity is of another pid namespace, or the kernel refuses to
 *   describe the process that has the pid.
 *
 * @throws {ProcSafeError} `invalid-argument` for what is no identity, and `helper-unavailable`,
 *   `unsupported-platform`, `incomplete`, `operation-failed`.
 */
export function inspectIdentity(saved: ProcessIdentity): IdentityState {
  const identity = checkIdentity(saved);
  const { bootId, pidNamespace } = decodeOrigin(readOrigin());
  const otherBoot = identity.bootId !== undefined && bootId !== undefined && identity.bootId !== bootId;
  if (!otherBoot && identity.pidNamespace !== pidNamespace) return "unknown";
  const found = readUnlessRefused(identity.pid);
  if (found === null) return "gone";
  if (otherBoot) return "reused";
  if (found === undefined) return "unknown";
  const comparison = compare(identity, checkIdentity(found));
  if (comparison === "same") return found.exited ? "exited" : "live";
  return comparison === "different" ? "reused" : "unknown";
}

function readUnlessRefused(pid: number): ProcessIdentity | null | undefined {
  try {
    return readProcessIdentity(pid);
  } catch (error) {
    if (error instanceof ProcSafeError && error.code === "access-denied") return undefined;
    throw error;
  }
}

/**
 * The boot and the pid namespace of this process: what an identity must share with it to be comparable.
 *
 * @throws {ProcSafeError} `unsupported-platform` where the system has no boot identity, for example under a
 *   /proc that is mounted with `subset=pid`.
 */
export function readBootIdentity(): BootIdentity {
  const { bootId, pidNamespace } = decodeOrigin(readOrigin());
  if (bootId === undefined) throw new ProcSafeError("unsupported-platform", "this system has no boot identity");
  return Object.freeze({ bootId, ...(pidNamespace !== undefined && { pidNamespace }) });
}
