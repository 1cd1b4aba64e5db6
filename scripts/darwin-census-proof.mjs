// The census of one child from running to gone, on this Mac: see census-proof.mjs. Needs the command line tools and
// the built package (`pnpm build`). Ten stages must pass.

import { proveCensus } from "./census-proof.mjs";
import { compileFixture } from "./fixtures.mjs";
import { fail } from "./run.mjs";

if (process.platform !== "darwin") fail("this proof is for macOS: elsewhere there is the rig");
await proveCensus(compileFixture("darwin-stages"));
