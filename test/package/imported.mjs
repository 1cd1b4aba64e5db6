// Imports every entry of the installed package, and takes a census.

import assert from "node:assert/strict";
import * as api from "proc-safe";
import * as errors from "proc-safe/errors";
import * as identity from "proc-safe/identity";
import * as inspect from "proc-safe/inspect";
import * as native from "proc-safe/native";
import manifest from "proc-safe/package.json" with { type: "json" };
import * as tree from "proc-safe/tree";
import { conform, installedBinary } from "./conform.mjs";

const answer = conform(api, native);
assert.equal(answer.version, manifest.version);
assert.equal(answer.path, installedBinary(answer.target));
const whole = { ...api };
for (const [entry, names] of Object.entries({ errors, identity, inspect, tree })) {
  for (const [name, value] of Object.entries(names)) assert.equal(whole[name], value, `${entry}: ${name}`);
}
process.stdout.write(JSON.stringify(answer));
