// Damages a Mach-O file in many ways and has the rig map each: `node damage.mjs FILE FOLDER ROUNDS`. Prints how many were
// refused and how many were accepted. The rig runs nothing of them, so the process must survive.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { info } from "../../index.mjs";

const [, , source = "", folder = "", rounds = "0"] = process.argv;
const original = readFileSync(source);
const counts = { refused: 0, accepted: 0 };

let seed = 1;
/** The same numbers in each run. */
function random(below) {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
  return (seed >>> 8) % below;
}

function attempt(bytes, name) {
  const file = join(folder, name);
  writeFileSync(file, bytes);
  try {
    info(file);
    counts.accepted++;
  } catch (error) {
    if (error.code !== "ERR_RIG") throw error;
    counts.refused++;
  }
  rmSync(file);
}

for (let size = 0; size < original.length; size += 911) attempt(original.subarray(0, size), `cut-${size}`);

/** Where the parsers read most: the load commands, and the end, which holds fixups and exports. */
const regions = [
  () => random(Math.min(2500, original.length)),
  () => original.length - 1 - random(Math.min(8000, original.length)),
  () => random(original.length),
];
const HEADER = 16; // a wrong magic or CPU is refused at once, and teaches nothing
for (let round = 0; round < Number(rounds); round++) {
  const bytes = Buffer.from(original);
  const region = regions[round % regions.length];
  for (let left = 1 + random(6); left > 0; left--) bytes[Math.max(region(), HEADER)] = random(2) === 0 ? random(256) : 0xff;
  attempt(bytes, `damaged-${round}`);
}
process.stdout.write(JSON.stringify(counts));
