// Which processes of a crashed run are still there?
//   node orphans.mjs record FILE PID …   keep the identities of these processes
//   node orphans.mjs FILE                print those that are still the same, and all below them

import { readFileSync, writeFileSync } from "node:fs";
import { descendantsOf, inspectIdentity, listProcesses, readProcessIdentity } from "proc-safe";

const [file, ...words] = process.argv.slice(2);
if (file === "record") {
  const identities = words.slice(1).map((pid) => readProcessIdentity(Number(pid)));
  writeFileSync(words[0], JSON.stringify(identities.filter((identity) => identity !== null)));
} else {
  const saved = JSON.parse(readFileSync(file, "utf8"));
  const rows = listProcesses();
  for (const identity of saved) {
    const state = inspectIdentity(identity); // a reboot, another container or a recycled pid is never "live"
    if (state === "unknown") console.log(`${identity.pid} unknown`);
    if (state !== "live") continue;
    console.log(`${identity.pid} live`);
    for (const row of descendantsOf(rows, identity).processes) console.log(`${row.pid} below ${identity.pid}`);
  }
}
