// The public entry `proc-safe/native`.

export { nativeStatus, setNativeBinding } from "./native.js";
export type { NativeMode, NativeStatus } from "./native.js";
