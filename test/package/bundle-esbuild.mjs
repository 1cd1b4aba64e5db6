// Bundles app.mjs with esbuild, as docs/install.md says.

import { cpSync } from "node:fs";
import { build } from "esbuild";

await build({ entryPoints: ["app.mjs"], outfile: "out/app.mjs", bundle: true, platform: "node", format: "esm" });
cpSync("node_modules/proc-safe/prebuilds", "out/prebuilds", { recursive: true });
