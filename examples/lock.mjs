// Runs a command while a lock file is held: node lock.mjs FILE COMMAND [WORD …]
// Exit status: the command's, or 75 if the lock is held. The file holds the owner's identity, so a recycled pid,
// a reboot and a restarted container do not look like an owner that lives.

import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { inspectIdentity, readProcessIdentity } from "proc-safe";

const [file, command, ...words] = process.argv.slice(2);
if (!acquire(file)) process.exit(75);
const { status } = spawnSync(command, words, { stdio: "inherit" });
rmSync(file);
process.exitCode = status ?? 70;

function acquire(lock) {
  const mine = `${lock}.${process.pid}`;
  writeFileSync(mine, JSON.stringify(readProcessIdentity(process.pid)));
  try {
    return create(() => linkSync(mine, lock)) || takeOver(mine, lock);
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Only one at a time may judge the owner and replace it. */
function takeOver(mine, lock) {
  const judging = `${lock}.judging`;
  if (!create(() => mkdirSync(judging))) return false;
  try {
    const state = inspectIdentity(JSON.parse(readFileSync(lock, "utf8")));
    if (state === "live" || state === "unknown") return false;
    renameSync(mine, lock);
    return true;
  } finally {
    rmdirSync(judging);
  }
}

function create(make) {
  try {
    make();
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}
