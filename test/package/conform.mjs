// What an installed package must answer about the process that asks, and where its binary must lie.

import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";

export function conform(api, native) {
  const status = native.nativeStatus();
  assert.equal(status.state, "ready", JSON.stringify(status));
  const rows = api.listProcesses();
  const own = rows.filter((row) => row.pid === process.pid);
  assert.equal(own.length, 1);
  assert.equal(own[0].owner, "same");
  assert.equal(own[0].parentPid, process.ppid);
  const identity = api.readProcessIdentity(process.pid);
  assert.equal(api.compareIdentities(identity, own[0].identity), "same");
  assert.equal(api.inspectIdentity(JSON.parse(JSON.stringify(identity))), "live");
  assert.equal(api.readProcessIdentity(4_294_967_295), null);
  assert.throws(() => api.readProcessIdentity(-1), { name: "ProcSafeError", code: "invalid-argument" });
  return { rows: rows.length, target: status.target, version: status.version, path: status.path };
}

/** The installed binary, below the directory of the program that runs. */
export function installedBinary(target) {
  return realpathSync(join(dirname(realpathSync(process.argv[1])), "node_modules/proc-safe/prebuilds", `${target}.node`));
}
