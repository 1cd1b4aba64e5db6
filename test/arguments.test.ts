// Every wrong argument is refused before any native call: with the binding switched off, a native
// call would be `helper-unavailable`.

import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { listProcesses, ProcSafeError, readProcessCommand, readProcessIdentity } from "proc-safe";
import { scriptValue } from "./support/node.ts";

const invalid = expect.objectContaining({ name: "ProcSafeError", code: "invalid-argument" });

const trap = (key: string): object =>
  new Proxy({}, { get: (_, name) => { if (name === key) throw new Error("trap"); }, ownKeys: () => [] });

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable([], {});
  revoke();
  return proxy;
};

const throwingElement = (): number[] =>
  Object.defineProperty([1], 0, { get: () => { throw new Error("element"); } });

const lying = (length: unknown): unknown =>
  new Proxy([], { get: (_, name) => (name === "length" ? length : 1) });

const BAD_OPTIONS: readonly (readonly [string, unknown])[] = [
  ["null", null],
  ["a number", 1],
  ["a string", "pids"],
  ["an array", []],
  ["a function", () => {}],
  ["an unknown name", { pid: [1] }],
  ["an unknown name without a value", { timeout: undefined }],
  ["pids: a string", { pids: "1" }],
  ["pids: a number", { pids: 1 }],
  ["pids: null", { pids: null }],
  ["pids: a typed array", { pids: Uint32Array.of(1) }],
  ["pids: a set", { pids: new Set([1]) }],
  ["pids: array-like", { pids: { length: 1, 0: 1 } }],
  ["pids: NaN", { pids: [NaN] }],
  ["pids: -1", { pids: [-1] }],
  ["pids: 1.5", { pids: [1.5] }],
  ["pids: 2^32", { pids: [2 ** 32] }],
  ["pids: Infinity", { pids: [Infinity] }],
  ["pids: text", { pids: ["1"] }],
  ["pids: a bigint", { pids: [1n] }],
  ["pids: a boxed number", { pids: [Object(1)] }],
  ["pids: undefined among them", { pids: [1, undefined] }],
  ["pids: sparse", { pids: Object.assign([], { 0: 1, 2: 2 }) }],
  ["pids: an element whose getter throws", { pids: throwingElement() }],
  ["pids: a revoked Proxy", { pids: revoked() }],
  ["pids: a length of -1", { pids: lying(-1) }],
  ["pids: a length that is text", { pids: lying("3") }],
  ["pids: an endless length", { pids: lying(2 ** 53 - 1) }],
  ["pids: too many", { pids: Object.assign([], { length: 2 ** 24 + 1 }) }],
  ["pids: wrong beside a deadline that passes at once", { pids: [NaN], timeoutMs: Number.MIN_VALUE }],
  ["timeoutMs: 0", { timeoutMs: 0 }],
  ["timeoutMs: -1", { timeoutMs: -1 }],
  ["timeoutMs: NaN", { timeoutMs: NaN }],
  ["timeoutMs: Infinity", { timeoutMs: Infinity }],
  ["timeoutMs: text", { timeoutMs: "5" }],
  ["timeoutMs: null", { timeoutMs: null }],
  ["visibility: unknown", { visibility: "some" }],
  ["visibility: true", { visibility: true }],
  ["an instance of a class", new (class { get pids(): number[] { return [1]; } })()],
  ["inherited options", Object.create({ pids: [1] })],
  ["a map", new Map([["pids", [1]]])],
  ["a getter that throws", { get pids() { throw new Error("getter"); } }],
  ["a trap that throws", trap("timeoutMs")],
  ["a Proxy that always throws", new Proxy({}, { get: () => { throw new Error("trap"); } })],
  ["a revoked Proxy", revoked()],
  ["ownKeys that throws", new Proxy({}, { ownKeys: () => { throw new Error("keys"); } })],
];

for (const [what, options] of BAD_OPTIONS) {
  test(`options: ${what}`, () => {
    expect(() => listProcesses(options as never)).toThrow(invalid);
  });
}

for (const pid of [undefined, null, "1", NaN, -1, 1.5, 2 ** 32, Infinity, 1n, {}, [1], true]) {
  test(`readProcessIdentity of ${typeof pid} ${String(pid)}`, () => {
    expect(() => readProcessIdentity(pid as never)).toThrow(invalid);
  });
}

test("what a getter threw is the cause", () => {
  const cause = new Error("getter");
  const options = { get timeoutMs(): number { throw cause; } };
  expect(() => listProcesses(options)).toThrow(expect.objectContaining({ cause }));
});

test("nothing native is loaded for a wrong argument", () => {
  const codes = scriptValue(
    `report([
      attempt(() => listProcesses({ pids: "1" })).code,
      attempt(() => listProcesses({ nope: 1 })).code,
      attempt(() => readProcessIdentity(-1)).code,
      attempt(() => procSafe.readProcessAncestry(-1)).code,
      attempt(() => procSafe.readProcessAncestry(1, { maxDepth: 0 })).code,
      attempt(() => listProcesses()).code,
      attempt(() => readProcessIdentity(1)).code,
      attempt(() => procSafe.readProcessAncestry(1)).code,
    ])`,
    { env: { PROC_SAFE_NATIVE: "off" } },
  );
  expect(codes).toEqual([
    ...Array.from({ length: 5 }, () => "invalid-argument"),
    ...Array.from({ length: 3 }, () => "helper-unavailable"),
  ]);
});

test("legal edges are answered without harm", () => {
  expect(listProcesses({ pids: [2 ** 31, 2 ** 32 - 1] })).toEqual([]);
  expect(readProcessIdentity(2 ** 31)).toBeNull();
  expect(readProcessIdentity(2 ** 32 - 1)).toBeNull();
  if (process.platform === "linux") expect(readProcessIdentity(0)).toBeNull();
  expect(listProcesses({ pids: undefined, timeoutMs: undefined, visibility: undefined }).length).toBeGreaterThan(0);
  expect(listProcesses({ pids: [process.pid], timeoutMs: 60_000, visibility: "all" })).toHaveLength(1);
  expect(listProcesses({ pids: [-0] }).every((row) => row.pid === 0)).toBe(true);
});

test("each option and each element is read once", () => {
  const reads: PropertyKey[] = [];
  const watch = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(from, name) {
        if (typeof name === "string") reads.push(name);
        return Reflect.get(from, name) as unknown;
      },
    });
  listProcesses(watch({ pids: watch([process.pid, 1]), timeoutMs: 60_000 }));
  expect(reads.sort()).toEqual(["0", "1", "environmentKeys", "includeCommand", "length", "pids", "timeoutMs", "visibility"]);
  reads.length = 0;
  readProcessCommand(0, watch({ environmentKeys: watch(["A", "B"]), timeoutMs: 60_000 }));
  expect(reads.sort()).toEqual(["0", "1", "environmentKeys", "length", "timeoutMs"]);
});

test("nobody's change to Object.prototype is an argument, or breaks an answer", () => {
  const script = `
    const whole = listProcesses().length;
    const changes = { pids: [1], visibility: "some", timeoutMs: -1, code: "x", error: {}, loaded: {}, cause: 1, maxDepth: 1, throughPid: 1, includeCommand: 1, environmentKeys: [""], executable: 1, cwd: 1, command: 1, uniqueId: "1", timeNamespace: "1" };
    const answers = [];
    for (const [key, value] of Object.entries(changes)) {
      Object.prototype[key] = value;
      try {
        answers.push(listProcesses({}).length > 1, readProcessIdentity(process.pid).pid === process.pid, isSupported(), nativeStatus().state === "ready");
        answers.push(procSafe.inspectIdentity(readProcessIdentity(process.pid)) === "live");
        answers.push(procSafe.readProcessAncestry(process.pid, {}).stoppedBy === "root");
        answers.push(procSafe.readProcessCommand(process.pid, {}).argv.length > 1);
        answers.push(procSafe.descendantsOf(listProcesses(), readProcessIdentity(process.ppid)).processes.some(({ pid }) => pid === process.pid));
      } finally { delete Object.prototype[key]; }
    }
    report([answers.length, answers.every(Boolean)]);
  `;
  expect(scriptValue(script)).toEqual([128, true]);
});

test("options from another realm are plain too", () => {
  expect(listProcesses(runInNewContext(`({ pids: [${process.pid}] })`) as object)).toHaveLength(1);
  expect(listProcesses(Object.assign(Object.create(null) as object, { pids: [process.pid] }))).toHaveLength(1);
});

test("a deadline counts from the beginning of the call", () => {
  const pids = Array.from({ length: 2 ** 22 }, () => 4_000_000);
  const started = performance.now();
  expect(() => listProcesses({ pids, timeoutMs: 1 })).toThrow(expect.objectContaining({ code: "timeout" }) as Error);
  const spent = performance.now() - started;
  const before = performance.now();
  listProcesses({ pids });
  expect(spent).toBeLessThan(performance.now() - before);
});

test("the error class", () => {
  const error = new ProcSafeError("timeout", "late", { details: { pid: 7, reason: "panic" } });
  expect(error).toBeInstanceOf(Error);
  expect([error.name, error.code, error.message, "cause" in error]).toEqual(["ProcSafeError", "timeout", "late", false]);
  expect(Object.isFrozen(error.details)).toBe(true);
  expect("details" in new ProcSafeError("timeout", "late")).toBe(false);
  expect(new ProcSafeError("timeout", "late", { cause: undefined })).toHaveProperty("cause", undefined);
});
