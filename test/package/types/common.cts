// What a CommonJS module sees of the types.

import procSafe = require("proc-safe");
import native = require("proc-safe/native");

const rows: readonly procSafe.ProcessSnapshot[] = procSafe.listProcesses();
// @ts-expect-error: a fact may be absent
const parent: number = rows[0]!.parentPid;
export = { parent, status: native.nativeStatus() };
