// The public entry `proc-safe/native`.

export { nativeStatus } from "./native.js";
export type { NativeMode, NativeStatus } from "./native.js";
