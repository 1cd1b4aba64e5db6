// Where things are.

import { fileURLToPath } from "node:url";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const ROOT = at("../../").replace(/\/$/, "");
export const FIXTURES = at("../fixtures");
export const FIXTURE_BUILD = at("../.build");

export function fixturePath(name: string): string {
  return `${FIXTURE_BUILD}/${name}`;
}
