// pidtree and ps-tree beside ours on real processes. They agree where the peers are right; where not, the truth is
// asserted and the peer's fault recorded.

import { createRequire } from "node:module";
import { promisify } from "node:util";
import peerPidtree from "pidtree";
import { expect } from "vitest";
import { start } from "../support/fixture.ts";
import { nativeTest } from "../support/needs.ts";
import { pidtree, psTree } from "./adapters.ts";

type PsTree = (pid: number, callback: (error: Error | null, children: readonly { PPID: string; PID: string; COMMAND: string }[]) => void) => void;
const peerPsTree = promisify(createRequire(import.meta.url)("ps-tree") as PsTree);
const ourPsTree = promisify(psTree as PsTree);

const pids = (pairs: readonly { pid: number }[]): number[] => pairs.map(({ pid }) => pid).sort((a, b) => a - b);

async function withFamily(look: (family: number[]) => Promise<void>, words = ["4"]): Promise<void> {
  const fixture = start("family", words);
  try {
    await look(((await fixture.next()) as { pids: number[] }).pids);
    fixture.write("check\n");
    expect(await fixture.next()).toEqual({ still: true });
  } finally {
    await fixture.end();
  }
}

nativeTest("pidtree: below a pid, with the pid itself, with parents", ["linux"], () =>
  withFamily(async ([top, ...rest]) => {
    expect(pids(await pidtree(top!))).toEqual([...rest].sort((a, b) => a - b));
    expect((await peerPidtree(top!)).sort((a, b) => a - b)).toEqual(pids(await pidtree(top!)));
    expect((await peerPidtree(top!, { root: true })).sort((a, b) => a - b)).toEqual(pids(await pidtree(top!, { root: true })));
    const byPid = (a: { pid: number }, b: { pid: number }): number => a.pid - b.pid;
    const theirs = await peerPidtree(top!, { advanced: true });
    expect([...theirs].sort(byPid)).toEqual((await pidtree(top!)).sort(byPid));
    expect(await pidtree(rest.at(-1)!)).toEqual([]);
    expect(await peerPidtree(rest.at(-1)!)).toEqual([]);
  }),
);

nativeTest("pidtree: of a pid that nobody has, both fail", ["linux"], async () => {
  await expect(pidtree(4_194_305)).rejects.toThrow();
  await expect(peerPidtree(4_194_305)).rejects.toThrow();
});

nativeTest("pidtree: everything, but the peer's ps is a process of its own", ["linux"], () =>
  withFamily(async (family) => {
    const ours = pids(await pidtree(-1));
    const theirs = await peerPidtree(-1);
    for (const pid of [...family, process.pid, 1]) {
      expect(ours).toContain(pid);
      expect(theirs).toContain(pid);
    }
    // Fault: a childless process has a child, the ps that was asked, and it is dead when the answer comes.
    const before = pids(await pidtree(process.pid));
    const strangers = (await peerPidtree(process.pid)).filter((pid) => !before.includes(pid));
    expect(strangers).toHaveLength(1);
    expect(pids(await pidtree(-1))).not.toContain(strangers[0]);
  }),
);

nativeTest("ps-tree: below a pid, with parents and names", ["linux"], () =>
  withFamily(async ([top, ...rest]) => {
    const ours = await ourPsTree(top!);
    expect(ours.map(({ PID, PPID, COMMAND }) => [PID, PPID, COMMAND])).toEqual(rest.map((pid, index) => [String(pid), String([top, ...rest][index]), "family"]));
    const rising = rest.every((pid, index) => pid > [top!, ...rest][index]!); // unless pids wrap just now
    if (rising) expect((await peerPsTree(top!)).map(({ PID, PPID }) => [PID, PPID])).toEqual(ours.map(({ PID, PPID }) => [PID, PPID]));
    expect(await ourPsTree(4_194_305)).toEqual([]);
    expect(await peerPsTree(4_194_305)).toEqual([]);
  }),
);

nativeTest("children with lower pids than their parents, as after a wrap", ["linux", "root"], () =>
  withFamily(async ([top, ...rest]) => {
    expect(rest).toEqual([...rest].sort((a, b) => b - a));
    expect((await ourPsTree(top!)).map(({ PID }) => Number(PID))).toEqual(rest);
    expect(pids(await pidtree(top!))).toEqual([...rest].sort((a, b) => a - b));
    expect((await peerPidtree(top!)).sort((a, b) => a - b)).toEqual(pids(await pidtree(top!)));
    // Fault: one pass in the order of pids, so that of what is below only the first is found.
    expect((await peerPsTree(top!)).map(({ PID }) => Number(PID))).toEqual(rest.slice(0, 1));
  }, ["4", "falling"]),
);
