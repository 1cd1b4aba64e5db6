import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const dist = fileURLToPath(new URL("dist", import.meta.url));

export default defineConfig({
  resolve: {
    // Tests import the package by its name, and get what is shipped.
    alias: [
      { find: /^proc-safe$/, replacement: `${dist}/index.js` },
      { find: /^proc-safe\/native$/, replacement: `${dist}/native-status.js` },
      { find: /^proc-safe\/(.+)$/, replacement: `${dist}/$1.js` },
    ],
  },
  test: {
    include: ["test/**/*.test.ts", "rig/test/*.test.ts"],
    globalSetup: ["test/support/build-fixtures.ts", "rig/test/support/build.ts"],
    pool: "forks",
    testTimeout: 120_000,
    hookTimeout: 120_000,
    server: { deps: { external: [/\/dist\//, /\/rig\/\w+\.mjs$/] } },
  },
});
