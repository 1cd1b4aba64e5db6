// `node --import rig/world.mjs …`: the program is in the rig, in every realm, and the simulated kernel knows what is true
// of it: its parent, itself, and the children that it starts, from their start to their reaping.

import { subscribe } from "node:diagnostics_channel";
import { isMainThread } from "node:worker_threads";
import { install, sim } from "./index.mjs";

const START = Date.now() - process.uptime() * 1000;

install({ platform: "darwin", arch: "x64" });
if (isMainThread) {
  sim.set({
    config: { uid: process.getuid(), selfPid: process.pid, selfPpid: process.ppid },
    processes: [
      { pid: 0, ppid: 0, uid: 0, comm: "kernel_task", uniqueid: 0, startSec: 1_000 },
      { pid: 1, ppid: 0, uid: 0, comm: "launchd", uniqueid: 1, startSec: 1_001 },
      ...(process.ppid === 1 ? [] : [{ pid: process.ppid, ppid: 1, uid: process.getuid(), uniqueid: 2, startSec: 1_002 }]),
      { ...mine(process.pid, process.ppid, START), argv: process.execArgv.concat(process.argv), env: environment(), uniqueid: 3 },
    ],
  });
  subscribe("child_process", ({ process: child }) => {
    child.once("spawn", () => {
      sim.add([{ ...mine(child.pid, process.pid, Date.now()), argv: child.spawnargs, uniqueid: child.pid + 1000 }]);
      child.once("exit", () => sim.remove(child.pid));
    });
  });
}

function mine(pid, ppid, bornMs) {
  const [startSec, startUsec] = [Math.floor(bornMs / 1000), Math.floor((bornMs % 1000) * 1000)];
  return { pid, ppid, uid: process.getuid(), comm: "node", startSec, startUsec };
}

function environment() {
  return Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
}
