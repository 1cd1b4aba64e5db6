// Opens the package with the shipped macOS binary in the rig. The kernel there is one for the whole process, so
// each test file has it for itself.

import { afterEach } from "vitest";
import { nativeTest } from "./needs.ts";

export interface InRig {
  readonly api: typeof import("proc-safe");
  readonly rig: typeof import("../../rig/index.mjs");
}

let opened: InRig | undefined;

/** Loaded once, and only where the rig is there. */
async function open(): Promise<InRig> {
  if (opened === undefined) {
    const rig = await import("../../rig/index.mjs");
    rig.install({ platform: "darwin", arch: "x64" });
    opened = { rig, api: await import("proc-safe") };
    const { sim } = rig;
    afterEach(() => sim.set([])); // also lets go of whatever waits
  }
  return opened;
}

export function rigTest(name: string, body: (at: InRig) => void | Promise<void>): void {
  nativeTest(name, ["linux", "x86_64", "rig", "darwin-x64"], async () => body(await open()));
}
