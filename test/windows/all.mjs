// The shipped package on real Windows processes, by Node's own test runner in one process: vitest does not start
// under wine, which follows no symbolic link of pnpm's.
// `scripts/windows.mjs` runs it, there and on Windows. PROC_SAFE_STATES is the program that states.c makes.

import "./commands.mjs";
import "./census.mjs";
