// The host's tests: its own, with nothing of this repository's configuration.

import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["spec/*.spec.ts"], pool: "forks", testTimeout: 120_000 } });
