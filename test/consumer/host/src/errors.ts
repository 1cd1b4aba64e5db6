// What the host does about each failure of an inspection. The switch must name every code there is.

import { ProcSafeError } from "@openclaw/proc-safe/errors";
import type { ProcSafeErrorCode } from "@openclaw/proc-safe/errors";

export type Advice = "mend" | "degrade" | "assume-alive" | "retry" | "report";

export function adviceFor(code: ProcSafeErrorCode): Advice {
  switch (code) {
    case "invalid-argument":
      return "mend";
    case "helper-unavailable":
    case "unsupported-platform":
      return "degrade";
    case "access-denied":
      return "assume-alive";
    case "incomplete":
    case "timeout":
      return "retry";
    case "operation-failed":
      return "report";
  }
}

/** The advice, or the error itself if it is none of the inspection's. */
export function judge(error: unknown): Advice {
  if (!(error instanceof ProcSafeError)) throw error;
  return adviceFor(error.code);
}
