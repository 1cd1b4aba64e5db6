// The census of one child from running to gone, on this Linux: see census-proof.mjs. Needs root, a C compiler and
// the built package (`pnpm build`): the child is the init of a pid namespace, which can be held inside its exit.

import { proveCensus } from "./census-proof.mjs";
import { compileFixture } from "./fixtures.mjs";
import { fail } from "./run.mjs";

if (process.platform !== "linux") fail("this proof is for Linux");
await proveCensus(compileFixture("stages"));
