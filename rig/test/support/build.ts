// Builds the rig and its test modules if they are stale, once a run, before any test.

import { buildModules, buildRig, whyNoRig } from "../../build.mjs";

export default function build(): void {
  if (whyNoRig() !== undefined) return;
  buildRig();
  buildModules();
}
