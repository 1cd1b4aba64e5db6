// What a module of ECMAScript sees of the types.

import { listProcesses, ProcSafeError } from "proc-safe";
import type { ProcessIdentity, ProcessSnapshot } from "proc-safe";
import { nativeStatus, setNativeBinding } from "proc-safe/native";
import { buildForest } from "proc-safe/tree";

const rows: readonly ProcessSnapshot[] = listProcesses({ timeoutMs: 1 });
const identities: (ProcessIdentity | undefined)[] = rows.map((row) => row.identity);
const state: "ready" | "unavailable" | "disabled" = nativeStatus().state;
setNativeBinding(new URL("file:///a.node"));
// @ts-expect-error: there is no such option
listProcesses({ timeout: 1 });
// @ts-expect-error: a fact may be absent
const parent: number = rows[0]!.parentPid;
export { buildForest, identities, parent, ProcSafeError, state };
