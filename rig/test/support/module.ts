// The test module (rig/test/module/): what its functions give.

import { existsSync } from "node:fs";
import { MODULES, RIG } from "../../build.mjs";
import { nativeTest } from "../../../test/support/needs.ts";

/** An answer of proc_pidinfo or sysctl: the fields are there if the call gave the whole record. */
export interface Answer {
  readonly ret: number;
  readonly errno: number;
  readonly length: number;
  readonly pid: number;
  readonly ppid: number;
  readonly pgid: number;
  readonly oppid: number;
  readonly status: number;
  readonly xstatus: number;
  readonly xstat: number;
  readonly flags: number;
  readonly flag: number;
  readonly uid: number;
  readonly gid: number;
  readonly ruid: number;
  readonly rgid: number;
  readonly svuid: number;
  readonly svgid: number;
  readonly nfiles: number;
  readonly nice: number;
  readonly tdev: number;
  readonly sec: number;
  readonly usec: number;
  readonly comm: string;
  readonly name: string;
  readonly uniqueid: bigint;
  readonly puniqueid: bigint;
  readonly idversion: number;
}

/** The texts of a working directory are there if the call gave the whole record. */
export interface Paths {
  readonly ret: number;
  readonly errno: number;
  readonly cwd?: string;
  readonly root?: string;
  readonly same?: number;
  readonly length: number;
  readonly pathErrno: number;
  readonly path: string;
}

type Numbers = Record<string, number | string>;

export interface Module {
  readonly registrationsInThisEnvironment: number;
  listPids(bytes: number): { count: number; errno: number; pids: number[] };
  listBytes(type: number, bytes: number): number;
  estimate(): { count: number; errno: number };
  pidinfo(pid: number, flavor: number, argument: number, size: number): Answer;
  record(pid: number, size: number): Answer;
  arguments(pid: number, size: number): { errno: number; bytes: Buffer };
  paths(pid: number, size: number): Paths;
  boot(): { errno: number; sec: number; usec: number; session: string };
  kill(pid: number, signal: number): number;
  groupOf(pid: number): number;
  sessionOf(pid: number): number;
  ids(): Numbers;
  loading(): Numbers;
  callUnknown(): number;
  crash(): number;
  localsHere(): Numbers;
  localsInThread(): Numbers;
  locks(): Numbers;
  semaphores(): Numbers;
  threads(): Numbers;
  files(): Numbers;
  folders(): Numbers;
  systemCalls(): Numbers;
  linking(): Numbers;
  texts(): Numbers;
  frames(steps: number): number;
}

/** A test that runs where the rig does. */
export function rigTest(name: string, body: () => void | Promise<void>): void {
  nativeTest(name, ["linux", "x86_64", "rig", "zig"], body);
}

/** As rigTest, with a module that LLVM's linker has linked. */
export function lldTest(name: string, body: () => void | Promise<void>): void {
  nativeTest(name, ["linux", "x86_64", "rig", "zig", "lld"], body);
}

const available = existsSync(RIG) && existsSync(MODULES.zig);

/** The rig; where it does not run, no test that uses it does. */
export const rig = available ? await import("../../index.mjs") : (undefined as never);

export const openModule = (file: string = MODULES.zig): Module => rig.load(file) as Module;
