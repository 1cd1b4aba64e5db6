// Who owns a lease: the port of a gateway, a session's lock file. The record survives restarts of the host.

import { compareIdentities, inspectIdentity, readBootIdentity, readProcessIdentity } from "@openclaw/proc-safe/identity";
import type { IdentityState, ProcessIdentity } from "@openclaw/proc-safe/identity";
import { readProcessCommand } from "@openclaw/proc-safe/inspect";
import { judge } from "./errors.js";

/** The variable that the host gives its gateways. */
export const MARKER = "AGENT_HOST_GATEWAY";

export interface Lease {
  readonly owner: ProcessIdentity;
  readonly bootId: string;
  readonly marker: string;
}

export function takeLease(marker: string): string {
  const owner = readProcessIdentity(process.pid);
  if (owner === null) throw new Error("the host itself has no identity");
  const lease: Lease = { owner, bootId: readBootIdentity().bootId, marker };
  return JSON.stringify(lease);
}

export type Holder = "mine" | "held" | "foreign" | "stale" | "unsure";

/** Only "stale" may be taken over. */
export function holderOf(text: string): Holder {
  const { owner, marker } = JSON.parse(text) as Lease;
  const own = readProcessIdentity(process.pid);
  if (own !== null && compareIdentities(owner, own) === "same") return "mine";
  const state: IdentityState = inspectIdentity(owner);
  if (state === "unknown") return "unsure";
  if (state !== "live") return "stale";
  return hasMarker(owner.pid, marker);
}

function hasMarker(pid: number, marker: string): Holder {
  try {
    const command = readProcessCommand(pid, { environmentKeys: [MARKER], timeoutMs: 60_000 });
    if (command === null) return "stale";
    return command.environment[MARKER] === marker ? "held" : "foreign";
  } catch (error) {
    return judge(error) === "mend" ? "foreign" : "unsure";
  }
}
