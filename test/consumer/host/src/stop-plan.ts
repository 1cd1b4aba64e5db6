// What is to be stopped below a process, and in which order; or why nobody can say. The host signals nothing
// that this does not name.

import { compareIdentities } from "@openclaw/proc-safe/identity";
import type { ProcessIdentity } from "@openclaw/proc-safe/identity";
import { listProcesses } from "@openclaw/proc-safe/inspect";
import type { ProcessOwner, ProcessSnapshot, ProcessState } from "@openclaw/proc-safe/inspect";

export type StopPlan =
  | { readonly kind: "stop"; readonly order: readonly ProcessIdentity[] }
  | { readonly kind: "gone" }
  | { readonly kind: "refused"; readonly why: "unknown-row" | "not-mine" };

const MINE: ProcessOwner = "same";
const DEAD: ProcessState = "zombie";

export function planStop(root: ProcessIdentity, rows: readonly ProcessSnapshot[] = listProcesses({ timeoutMs: 60_000 })): StopPlan {
  const top = rows.find((row) => row.pid === root.pid);
  if (top === undefined) return { kind: "gone" };
  if (top.identity === undefined) return { kind: "refused", why: "unknown-row" };
  if (compareIdentities(root, top.identity) !== "same") return { kind: "gone" };
  // A row of unknown parentage may be a child: then nothing is known.
  const mine = rows.filter((row) => row.owner !== "different");
  if (mine.some((row) => row.parentPid === undefined)) return { kind: "refused", why: "unknown-row" };
  const order: ProcessSnapshot[] = [top];
  for (const parent of order) order.push(...rows.filter((row) => row.parentPid === parent.pid && row.pid !== parent.pid));
  const living = order.filter((row) => row.state !== DEAD && row.exiting !== true);
  if (living.some((row) => row.owner !== MINE || row.identity === undefined)) return { kind: "refused", why: "not-mine" };
  return { kind: "stop", order: living.toReversed().map((row) => row.identity!) };
}
