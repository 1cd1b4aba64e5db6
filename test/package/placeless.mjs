// Code in a bundle for CommonJS is in no file: the loader says so, and names the binary all the same.

import assert from "node:assert/strict";
import { nativeStatus } from "proc-safe/native";

const { error, path, target } = nativeStatus();
assert.deepEqual([error.reason, path, target.startsWith(process.platform)], ["binary-missing", undefined, true]);
