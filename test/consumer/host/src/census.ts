// The process list of the host's status page. A failed census is a failure, never an empty page.

import { listProcesses } from "@openclaw/proc-safe/inspect";
import type { ProcessCommand, ProcessIdentity } from "@openclaw/proc-safe/inspect";

export interface Observation {
  readonly pid: number;
  readonly parentPid?: number;
  readonly startedAtMs?: number;
  readonly argv?: ProcessCommand["argv"];
  readonly cwd?: string;
  readonly foreign?: true;
}

export function observe(timeoutMs: number): Observation[] {
  return listProcesses({ timeoutMs, includeCommand: true }).flatMap(({ pid, owner, identity, command }) => {
    if (pid === 0 || identity?.exited === true) return [];
    return [
      {
        pid,
        ...(identity && { parentPid: identity.parentPid, startedAtMs: startOf(identity) }),
        ...(command && { argv: command.argv }),
        ...(command?.cwd !== undefined && { cwd: command.cwd }),
        ...(owner === "different" && { foreign: true as const }),
      },
    ];
  });
}

const startOf = ({ startTimeMicros }: ProcessIdentity): number => Math.floor(startTimeMicros / 1_000);
