// Whether a gateway may be replaced from here: only by a descendant of the supervisor that started it.

import { createRequire } from "node:module";
import { isSupported, readProcessAncestry } from "@openclaw/proc-safe/identity";
import type { ProcessAncestry } from "@openclaw/proc-safe/identity";
import { judge } from "./errors.js";

export type Permission = "granted" | "refused" | "unknown";

export function mayRestart(supervisorPid: number, maxDepth = 34): Permission {
  if (!isSupported()) return "unknown";
  try {
    return permissionOf(readProcessAncestry(process.pid, { maxDepth, throughPid: supervisorPid }));
  } catch (error) {
    if (judge(error) === "mend") throw error;
    return "unknown";
  }
}

export function permissionOf(ancestry: ProcessAncestry | null): Permission {
  if (ancestry === null || !ancestry.complete) return "unknown";
  if (ancestry.stoppedBy !== "through-pid") return "refused";
  return ancestry.chain.at(-1)?.exited === false ? "granted" : "refused";
}

/** Sealed builds choose their dependency late, and are CommonJS. */
export function loadLate(): typeof import("@openclaw/proc-safe/identity") {
  return createRequire(import.meta.url)("@openclaw/proc-safe/identity") as typeof import("@openclaw/proc-safe/identity");
}
