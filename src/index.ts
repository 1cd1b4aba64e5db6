// The public entry `proc-safe`: everything.

export { listProcesses, readProcessCommand } from "./inspect.js";
export type { ListProcessesOptions, ReadProcessCommandOptions } from "./inspect.js";
export {
  compareIdentities,
  inspectIdentity,
  isSupported,
  readBootIdentity,
  readProcessAncestry,
  readProcessIdentity,
} from "./identity.js";
export type { ReadProcessAncestryOptions } from "./identity.js";
export { buildForest, descendantsOf, findTree, membersOfGroup, membersOfSession } from "./tree.js";
export type { Descendants, DescendantsGap, Members, MembersGap, ProcessTree } from "./tree.js";
export { nativeStatus, setNativeBinding } from "./native-status.js";
export type { NativeMode, NativeStatus } from "./native-status.js";
export { ProcSafeError } from "./errors.js";
export type { ProcSafeErrorCode, ProcSafeErrorDetails, ProcSafeErrorReason } from "./errors.js";
export type { AncestryStop, BootIdentity, IdentityComparison, IdentityState, ProcessAncestry } from "./types.js";
export type { ProcessCommand, ProcessIdentity, ProcessOwner, ProcessSnapshot, ProcessState } from "./types.js";
