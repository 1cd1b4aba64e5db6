// Compiles the C fixtures that are stale, once a run, before any test.

import { compileFixture, fixtureNames } from "../../scripts/fixtures.mjs";

export default function buildFixtures(): void {
  for (const name of fixtureNames()) compileFixture(name);
}
