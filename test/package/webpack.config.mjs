// Bundles app.mjs with webpack, as docs/install.md says.

import { cpSync } from "node:fs";
import { resolve } from "node:path";

cpSync("node_modules/proc-safe/prebuilds", "out/prebuilds", { recursive: true });
export default {
  mode: "production",
  target: "node20",
  entry: "./app.mjs",
  experiments: { outputModule: true },
  module: { parser: { javascript: { importMeta: false } } }, // the bundle's own place, not the source's
  output: { path: resolve("out"), filename: "app.mjs", module: true, chunkFormat: "module" },
};
