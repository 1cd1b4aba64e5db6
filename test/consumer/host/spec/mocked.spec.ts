// The host's own tests with the package's functions replaced, as its test suite does it.

import { beforeEach, expect, it, vi } from "vitest";
import { ProcSafeError } from "@openclaw/proc-safe/errors";
import type { ProcSafeErrorCode } from "@openclaw/proc-safe/errors";
import type { ProcessAncestry, ProcessIdentity } from "@openclaw/proc-safe/identity";
import type { ProcessSnapshot } from "@openclaw/proc-safe/inspect";

const { list, readCommand } = vi.hoisted(() => ({ list: vi.fn(), readCommand: vi.fn() }));
const readAncestry = vi.hoisted(() => vi.fn<typeof import("@openclaw/proc-safe/identity").readProcessAncestry>());
vi.mock("@openclaw/proc-safe/inspect", async (importOriginal) => ({
  ...(await importOriginal<typeof import("@openclaw/proc-safe/inspect")>()),
  listProcesses: list,
  readProcessCommand: readCommand,
}));
vi.mock("@openclaw/proc-safe/identity", async (importOriginal) => ({
  ...(await importOriginal<typeof import("@openclaw/proc-safe/identity")>()),
  inspectIdentity: () => "live",
  readProcessAncestry: readAncestry,
}));
import { observe } from "../src/census.js";
import { adviceFor, judge } from "../src/errors.js";
import { holderOf } from "../src/lease.js";
import { mayRestart } from "../src/restart.js";
import { planStop } from "../src/stop-plan.js";

const one: ProcessIdentity = { pid: 12, parentPid: 1, startTimeMicros: 1_725_526_400_000_999, startTimeResolutionMicros: 1, exited: false };
const rows = [
  { pid: 1, owner: "different", parentPid: 0, state: "running", identity: { ...one, pid: 1, parentPid: 0 } },
  { pid: 12, owner: "same", parentPid: 1, state: "running", identity: one, command: { executable: "/bin/host", argv: ["host", ""], cwd: "/tmp", environment: {} } },
  { pid: 13, owner: "same", parentPid: 12, state: "running", exiting: true, identity: { ...one, pid: 13, parentPid: 12 } },
  { pid: 14, owner: "same", parentPid: 12, state: "stopped", uid: 7, name: "worker", identity: { ...one, pid: 14, parentPid: 12 } },
  { pid: 15, owner: "same", parentPid: 12, state: "zombie", identity: { ...one, pid: 15, parentPid: 12, exited: true } },
] satisfies ProcessSnapshot[];

beforeEach(() => {
  for (const mock of [list, readCommand, readAncestry]) mock.mockReset();
});

it("a bare row, or another user's process below the root, refuses a plan", () => {
  list.mockReturnValue(rows);
  expect(planStop(one)).toMatchObject({ kind: "stop", order: [{ pid: 14 }, { pid: 12 }] });
  expect(planStop(one, [...rows, { pid: 99, owner: "unknown" }])).toEqual({ kind: "refused", why: "unknown-row" });
  const theirs = { ...rows[3]!, pid: 20, owner: "different" as const };
  expect(planStop(one, [...rows, theirs])).toEqual({ kind: "refused", why: "not-mine" });
});

const CODES: Record<ProcSafeErrorCode, string> = {
  "invalid-argument": "mend",
  "helper-unavailable": "degrade",
  "unsupported-platform": "degrade",
  "access-denied": "assume-alive",
  incomplete: "retry",
  timeout: "retry",
  "operation-failed": "report",
};

it.each(Object.entries(CODES) as [ProcSafeErrorCode, string][])("%s passes through a census, and has its advice", (code, advice) => {
  const error = new ProcSafeError(code, "Census failed", { details: { pid: 12, reason: "visibility-policy" }, cause: new Error("why") });
  list.mockImplementation(() => {
    throw error;
  });
  expect(() => observe(1_000)).toThrow(error);
  expect(() => planStop(one)).toThrow(error);
  expect([adviceFor(code), judge(error)]).toEqual([advice, advice]);
  expect(error).toMatchObject({ name: "ProcSafeError", code, details: { pid: 12, reason: "visibility-policy" }, cause: { message: "why" } });
  expect(() => judge(new Error("another's"))).toThrow("another's");
});

it("a lease whose owner may not be read is nobody's to take", () => {
  const lease = JSON.stringify({ owner: one, marker: "a" });
  for (const code of ["access-denied", "operation-failed", "timeout", "unsupported-platform"] as const) {
    readCommand.mockImplementation(() => {
      throw new ProcSafeError(code, "denied");
    });
    expect(holderOf(lease)).toBe("unsure");
  }
  readCommand.mockReset().mockReturnValue({ argv: Object.freeze([]), environment: { AGENT_HOST_GATEWAY: "a" } });
  expect(holderOf(lease)).toBe("held");
  readCommand.mockReturnValue(null);
  expect(holderOf(lease)).toBe("stale");
});

it.each([
  ["unknown", null],
  ["unknown", { chain: [one], complete: false, stoppedBy: "unreadable-parent" }],
  ["unknown", { chain: [one], complete: false, stoppedBy: "max-depth" }],
  ["unknown", { chain: [one], complete: false, stoppedBy: "cycle" }],
  ["refused", { chain: [one], complete: true, stoppedBy: "root" }],
  ["refused", { chain: [one], complete: true, stoppedBy: "missing-parent" }],
  ["refused", { chain: [one], complete: true, stoppedBy: "recycled-parent" }],
  ["refused", { chain: [one, { ...one, exited: true }], complete: true, stoppedBy: "through-pid" }],
  ["granted", { chain: [one, one], complete: true, stoppedBy: "through-pid" }],
] satisfies [string, ProcessAncestry | null][])("a restart is %s by %j", (permission, ancestry) => {
  readAncestry.mockReturnValue(ancestry);
  expect(mayRestart(12)).toBe(permission);
  expect(readAncestry).toHaveBeenCalledExactlyOnceWith(process.pid, { maxDepth: 34, throughPid: 12 });
});

it("the status page leaves out the dead and says whose a process is", () => {
  list.mockReturnValue(rows);
  const seen = observe(5);
  expect(seen.map(({ pid }) => pid)).toEqual([1, 12, 13, 14]);
  expect(seen[0]).toMatchObject({ foreign: true });
  expect(seen[1]).toEqual({ pid: 12, parentPid: 1, startedAtMs: 1_725_526_400_000, argv: ["host", ""], cwd: "/tmp" });
  expect(list).toHaveBeenCalledExactlyOnceWith({ timeoutMs: 5, includeCommand: true });
});
