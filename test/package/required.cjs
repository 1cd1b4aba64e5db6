// Requires every entry of the installed package, and takes a census.

const assert = require("node:assert/strict");
const api = require("proc-safe");
const native = require("proc-safe/native");
const manifest = require("proc-safe/package.json");
const { conform, installedBinary } = require("./conform.mjs");

const answer = conform(api, native);
assert.equal(answer.version, manifest.version);
assert.equal(answer.path, installedBinary(answer.target));
const whole = { ...api };
for (const entry of ["errors", "identity", "inspect", "tree"]) {
  for (const [name, value] of Object.entries(require(`proc-safe/${entry}`))) assert.equal(whole[name], value, `${entry}: ${name}`);
}
process.stdout.write(JSON.stringify(answer));
