// The public entry `proc-safe`: everything.

export { listProcesses } from "./inspect.js";
export type { ListProcessesOptions } from "./inspect.js";
export {
  compareIdentities,
  inspectIdentity,
  isSupported,
  readBootIdentity,
  readProcessIdentity,
} from "./identity.js";
export { nativeStatus } from "./native-status.js";
export type { NativeMode, NativeStatus } from "./native-status.js";
export { ProcSafeError } from "./errors.js";
export type { ProcSafeErrorCode, ProcSafeErrorDetails, ProcSafeErrorReason } from "./errors.js";
export type { BootIdentity, IdentityComparison, IdentityState } from "./types.js";
export type { ProcessIdentity, ProcessOwner, ProcessSnapshot, ProcessState } from "./types.js";
