// The rig: runs a real x86_64 Mach-O addon inside Linux Node, over a simulated Darwin kernel. See README.md.

import { closeSync, openSync, readSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { makeEncoder } from "./script.mjs";

const RIG = fileURLToPath(new URL("build/rig.node", import.meta.url));
const native = createRequire(import.meta.url)(RIG);
const { kernel } = native;
const encode = makeEncoder(kernel);
const dlopen = process.dlopen;

const MACHO_MAGIC = 0xfeedfacf;

/** Numbers that hooks and the log call `flavor`. */
export const FLAVOR = Object.freeze({
  PROC_PIDTBSDINFO: 3,
  PROC_PIDVNODEPATHINFO: 9,
  PROC_PIDPATHINFO: 11,
  PROC_PIDT_SHORTBSDINFO: 13,
  PROC_PIDUNIQIDENTIFIERINFO: 17,
  PROC_PIDT_BSDINFOWITHUNIQID: 18,
  KERN_PROC: 14,
  KERN_PROCARGS2: 49,
  KERN_BOOTTIME: 21,
});

/** Bits of a process's `flag`. */
export const FLAG = Object.freeze({
  P_CONTROLT: 0x2,
  P_LP64: 0x4,
  P_CONTINUED: 0x80,
  P_SYSTEM: 0x200,
  P_TRACED: 0x800,
  P_WEXIT: 0x2000,
  P_EXEC: 0x4000,
  P_TRANSLATED: 0x20000,
});

export const sim = Object.freeze({
  set(script) {
    const { config = {}, processes = [], hooks = [], ...rest } = Array.isArray(script) ? { processes: script } : script;
    const strange = Object.keys(rest)[0];
    if (strange !== undefined) throw new TypeError(`unknown key ${strange} in the script`);
    const { words, session } = encode.encodeConfig(config);
    kernel.reset(words, session, encode.encodeProcesses(processes), encode.encodeHooks(hooks));
  },
  add(processes) {
    kernel.add(encode.encodeProcesses(processes));
  },
  patch(pid, changes) {
    const changed = kernel.patch(Number(encode.pidWord(pid, "pid")), encode.encodeProcess(changes, { partial: true }));
    if (!changed) throw new RangeError(`there is no simulated process ${pid}`);
  },
  remove(pid) {
    kernel.remove(Number(encode.pidWord(pid, "pid")));
  },
  hooks(hooks) {
    kernel.hooks(encode.encodeHooks(hooks));
  },
  log: () => kernel.log(),
  clearLog: () => kernel.clearLog(),
});

/** Registers the addon in this realm, in a Node-API environment of its own, and returns its exports. */
export function load(file, script) {
  if (script !== undefined) sim.set(script);
  return native.register(resolve(file), () => {
    const module = { exports: {} };
    dlopen.call(process, module, RIG); // which now answers for the addon
    return module.exports;
  });
}

/** What the file imports and holds. Runs none of its code. */
export const info = (file) => native.info(resolve(file));

export const stats = () => native.stats();

export function isMachO(path) {
  let file;
  try {
    file = openSync(path, "r");
  } catch {
    return false;
  }
  try {
    const magic = Buffer.alloc(4);
    return readSync(file, magic, 0, 4, 0) === 4 && magic.readUInt32LE(0) === MACHO_MAGIC;
  } finally {
    closeSync(file);
  }
}

/** Makes require() and process.dlopen accept Mach-O files in this realm, and if asked another platform's name. */
export function install({ platform, arch } = {}) {
  const before = process.dlopen;
  process.dlopen = (module, file, ...rest) => {
    if (!isMachO(file)) return before.call(process, module, file, ...rest);
    module.exports = load(file);
  };
  const disguised = Object.entries({ platform, arch })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      const descriptor = Object.getOwnPropertyDescriptor(process, name);
      Object.defineProperty(process, name, { ...descriptor, value });
      return [name, descriptor];
    });
  return () => {
    process.dlopen = before;
    for (const [name, descriptor] of disguised) Object.defineProperty(process, name, descriptor);
  };
}
