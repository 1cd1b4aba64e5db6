// The public entry `proc-safe/identity`: which process a pid is.

import { unlessRefused, walkAncestry } from "./ancestry.js";
import { checkAncestryOptions, checkIdentity, checkPid } from "./arguments.js";
import { compare } from "./births.js";
import { decodeIdentity, decodeOrigin } from "./decode.js";
import { ProcSafeError } from "./errors.js";
import { readIdentity, readOrigin } from "./native.js";
import type { BootIdentity, IdentityComparison, IdentityState, ProcessAncestry, ProcessIdentity } from "./types.js";

export { isSupported } from "./native.js";
export type { AncestryStop, BootIdentity, IdentityComparison, IdentityState, ProcessAncestry, ProcessIdentity } from "./types.js";

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
  const found = unlessRefused(() => readProcessIdentity(identity.pid));
  if (found === null) return "gone";
  if (otherBoot) return "reused";
  if (found === undefined) return "unknown";
  const comparison = compare(identity, checkIdentity(found));
  if (comparison === "same") return found.exited ? "exited" : "live";
  return comparison === "different" ? "reused" : "unknown";
}

export interface ReadProcessAncestryOptions {
  /** The most processes in the chain, the asked one included: an integer from 1 on; 1,024 without it. */
  readonly maxDepth?: number | undefined;
  /** Stop at the ancestor that has this pid, which is then the last of the chain. */
  readonly throughPid?: number | undefined;
}

/**
 * The process that has the pid now, its parent, and so on upwards. The chain is a fact of one instant of the
 * call: then each was alive, or a zombie at the foot of the chain (on Windows anywhere in it: what has exited stays
 * the parent of its children while a handle keeps it), and the parent of the one before. `null`
 * means that the kernel proved that no process has the pid.
 *
 * On Linux the parent is the one that the kernel names now: an orphan's is the nearest ancestor that is a
 * subreaper (PR_SET_CHILD_SUBREAPER(2const)), or the init of its pid namespace. A parent outside the caller's
 * pid namespace is none, so the chain ends there with `root`.
 *
 * @throws {ProcSafeError} `access-denied` where the process itself may not be described (an ancestor's refusal
 *   is `unreadable-parent`), `incomplete` where the pid changes hands at every try, and `invalid-argument`,
 *   `helper-unavailable`, `unsupported-platform`, `operation-failed`.
 */
export function readProcessAncestry(pid: number, options?: ReadProcessAncestryOptions): ProcessAncestry | null {
  return walkAncestry(readProcessIdentity, checkPid(pid), checkAncestryOptions(options));
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
