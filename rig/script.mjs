// Checks a script for the simulated kernel and puts it into the form that the kernel reads (src/kernel/face.c): 64-bit
// words in the order of the kernel's own tables. A mistake in a script throws: nothing unknown passes silently.

/** XNU's pids end here. */
const LAST_PID = 99998;
const TEXT_SIZES = { comm: 16, name: 32, exe: Infinity, cwd: Infinity };
const WORDS_OF_PATCH = 3;

/** @param kernel what the native part exports under that name */
export function makeEncoder(kernel) {
  const index = (names) => new Map(names.map((name, position) => [name, position]));
  const numbers = index(kernel.numbers);
  const phases = index(kernel.phases);
  const overrides = index(kernel.overrides);
  const modes = index(kernel.modes);
  const configNumbers = index(kernel.config);
  const calls = index(kernel.calls);
  const hookNumbers = index(kernel.hookNumbers);
  const given = index([...kernel.numbers, ...Object.keys(TEXT_SIZES), "arguments"]);

  const wordsOfOverride = 4 + WORDS_OF_PATCH * kernel.maxPatches;
  const wordsOfProcess = 1 + numbers.size + overrides.size * wordsOfOverride;

  const PROCESS_KEYS = [...numbers.keys(), ...overrides.keys(), ...Object.keys(TEXT_SIZES), "path", "argv", "env"];
  const HOOK_KEYS = ["fn", "flavor", "pid", "call", "times", "when", "set", "replace", "add", "vanish", "target", "errno", "delayMs"];

  /** A whole number, a boolean, or the name of one of Darwin's errors. */
  function word(value, what) {
    if (typeof value === "bigint") return BigInt.asIntN(64, value);
    if (typeof value === "boolean") return value ? 1n : 0n;
    if (Number.isSafeInteger(value)) return BigInt(value);
    if (typeof value === "string" && Object.hasOwn(kernel.errnos, value)) return BigInt(kernel.errnos[value]);
    throw new TypeError(`${what} must be a whole number, not ${String(value)}`);
  }

  function pidWord(value, what) {
    const pid = word(value, what);
    if (pid < 0n || pid > LAST_PID) throw new TypeError(`${what} must be a pid, not ${pid}`);
    return pid;
  }

  function position(table, name, what) {
    const found = table.get(name);
    if (found === undefined) throw new TypeError(`${what} must be one of ${[...table.keys()].join(", ")}, not ${String(name)}`);
    return BigInt(found);
  }

  function encodeOverride(value, what) {
    const words = new BigInt64Array(wordsOfOverride);
    const set = (mode, number = 0n) => {
      words[1] = position(modes, mode, what);
      words[2] = number;
    };
    words[0] = 1n;
    if (value === "short") {
      set("length", -1n);
    } else if (typeof value === "string") {
      if (value === "errno" || value === "length") throw new TypeError(`${what}: ${value} needs a value`);
      set(value);
    } else {
      checkKeys(value, ["errno", "len", "patch"], what);
      if (value.errno !== undefined) set("errno", word(value.errno, `${what}.errno`));
      if (value.len !== undefined) set("length", word(value.len, `${what}.len`));
      encodePatches(value.patch ?? [], words, what);
    }
    return words;
  }

  function encodePatches(patches, words, what) {
    if (!Array.isArray(patches) || patches.length > kernel.maxPatches) {
      throw new TypeError(`${what}.patch must hold at most ${kernel.maxPatches} patches`);
    }
    words[3] = BigInt(patches.length);
    for (const [at, patch] of patches.entries()) {
      const [offset, size, value] = Array.isArray(patch) && patch.length === WORDS_OF_PATCH ? patch : [];
      if (!(Number.isInteger(offset) && offset >= 0 && Number.isInteger(size) && size >= 1 && size <= 8)) {
        throw new TypeError(`${what}.patch must hold [offset, size, value]`);
      }
      words.set([BigInt(offset), BigInt(size), word(value, `${what}.patch`)], 4 + at * WORDS_OF_PATCH);
    }
  }

  function encodeProcess(process, { partial = false } = {}) {
    checkKeys(process, PROCESS_KEYS, "a process");
    if (!partial && process.pid === undefined) throw new TypeError("a process needs a pid");
    const words = new BigInt64Array(wordsOfProcess);
    const encoded = { words };
    const mark = (name) => {
      words[0] |= 1n << BigInt(given.get(name));
    };
    for (const [name, at] of numbers) {
      const value = process[name];
      if (value === undefined) continue;
      mark(name);
      if (name === "phase") words[1 + at] = position(phases, value, "phase");
      else words[1 + at] = name === "pid" ? pidWord(value, name) : word(value, name);
    }
    for (const [name, at] of overrides) {
      if (process[name] !== undefined) words.set(encodeOverride(process[name], name), 1 + numbers.size + at * wordsOfOverride);
    }
    for (const [name, size] of Object.entries(TEXT_SIZES)) {
      if (process[name] === undefined) continue;
      if (typeof process[name] !== "string") throw new TypeError(`${name} must be a string`);
      mark(name);
      encoded[name] = Buffer.from(process[name]).subarray(0, size).toString();
    }
    if (process.argv !== undefined) {
      mark("arguments");
      encoded.arguments = encodeArguments(process);
    } else if (process.path !== undefined || process.env !== undefined) {
      throw new TypeError("path and env need argv");
    }
    return encoded;
  }

  /** One process or several. */
  function encodeProcesses(list, options) {
    return (Array.isArray(list) ? list : [list]).map((process) => encodeProcess(process, options));
  }

  function encodeHook(hook) {
    checkKeys(hook, HOOK_KEYS, "a hook");
    const when = hook.when ?? (hook.errno === undefined ? "after" : "before");
    if (when !== "before" && when !== "after") throw new TypeError(`when must be before or after, not ${String(when)}`);
    if (hook.errno !== undefined && when === "after") throw new TypeError("an errno needs when: before");
    const values = {
      fn: position(calls, hook.fn, "fn"),
      hasFlavor: hook.flavor !== undefined,
      flavor: hook.flavor ?? 0,
      hasPid: hook.pid !== undefined,
      pid: hook.pid ?? 0,
      call: hook.call ?? 1,
      times: hook.times ?? 1,
      after: when === "after",
      vanish: hook.vanish ?? false,
      hasTarget: hook.target !== undefined,
      target: hook.target ?? 0,
      errnoValue: hook.errno ?? 0,
      delayMs: hook.delayMs ?? 0,
    };
    const words = new BigInt64Array(hookNumbers.size);
    for (const [name, at] of hookNumbers) words[at] = word(values[name], name);
    const partial = { partial: true };
    return {
      words,
      set: hook.set === undefined ? [] : [encodeProcess(hook.set, partial)],
      replace: hook.replace === undefined ? [] : [encodeProcess(hook.replace, partial)],
      add: hook.add === undefined ? [] : encodeProcesses(hook.add),
    };
  }

  function encodeHooks(hooks) {
    if (!Array.isArray(hooks)) throw new TypeError("hooks must be an array");
    return hooks.map(encodeHook);
  }

  function encodeConfig(config) {
    checkKeys(config, [...configNumbers.keys(), "bootSession"], "config");
    const words = new BigInt64Array(1 + configNumbers.size);
    for (const [name, at] of configNumbers) {
      if (config[name] === undefined) continue;
      words[0] |= 1n << BigInt(at);
      words[1 + at] = word(config[name], name);
    }
    const session = config.bootSession ?? "";
    if (typeof session !== "string") throw new TypeError("bootSession must be a string");
    return { words, session };
  }

  return { encodeConfig, encodeHooks, encodeProcess, encodeProcesses, pidWord };
}

function checkKeys(object, known, what) {
  if (typeof object !== "object" || object === null || Array.isArray(object)) throw new TypeError(`${what} must be an object`);
  const strange = Object.keys(object).find((key) => !known.includes(key));
  if (strange !== undefined) throw new TypeError(`unknown key ${strange} in ${what}`);
}

/** As KERN_PROCARGS2 gives them: how many, the program's path, zeroes up to a multiple of 8, arguments, environment. */
function encodeArguments({ path = "/usr/bin/true", argv, env = [] }) {
  const strings = [path, ...argv, ...env];
  if (!strings.every((text) => typeof text === "string")) throw new TypeError("path, argv and env must hold strings");
  const count = Buffer.alloc(4);
  count.writeInt32LE(argv.length);
  const program = Buffer.from(`${path}\0`);
  const padding = Buffer.alloc((8 - (program.length % 8)) % 8);
  return Buffer.concat([count, program, padding, ...[...argv, ...env].map((text) => Buffer.from(`${text}\0`))]);
}
