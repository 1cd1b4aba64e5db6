// Identities that are kept: compared, inspected, and what is refused as none.

import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { compareIdentities, inspectIdentity, readBootIdentity, readProcessIdentity } from "proc-safe";
import type { ProcessIdentity } from "proc-safe";
import { start, whileHeld } from "./support/fixture.ts";
import { nativeTest } from "./support/needs.ts";
import { inNamespace, scriptValue } from "./support/node.ts";

const BASE = {
  pid: 700,
  parentPid: 1,
  startTimeMicros: 1_796_062_244_120_000,
  startTimeResolutionMicros: 10_000,
  startTimeSinceBootMicros: 3_112_770_000,
  bootId: "d9a0c4de-0000-4000-8000-000000000000",
  pidNamespace: "4026531836",
  exited: false,
} satisfies ProcessIdentity;

const without = (key: keyof typeof BASE): ProcessIdentity =>
  Object.fromEntries(Object.entries(BASE).filter(([name]) => name !== key)) as unknown as ProcessIdentity;

const PAIRS: readonly (readonly [string, ProcessIdentity, ProcessIdentity, string])[] = [
  ["itself", BASE, { ...BASE }, "same"],
  ["another parent and an exit", BASE, { ...BASE, parentPid: 9, exited: true }, "same"],
  ["another pid", BASE, { ...BASE, pid: 701 }, "different"],
  ["another boot", BASE, { ...BASE, bootId: "another" }, "different"],
  ["another boot and namespace", BASE, { ...BASE, bootId: "another", pidNamespace: "5" }, "different"],
  ["another pid namespace", BASE, { ...BASE, pidNamespace: "5" }, "unknown"],
  ["another pid in another pid namespace", BASE, { ...BASE, pid: 5, pidNamespace: "5" }, "unknown"],
  ["a pid namespace on one side", BASE, without("pidNamespace"), "unknown"],
  ["a boot on one side", BASE, without("bootId"), "unknown"],
  ["no boot on either side", without("bootId"), without("bootId"), "same"],
  ["another start", BASE, { ...BASE, startTimeSinceBootMicros: 3_112_780_000 }, "different"],
  ["a clock step", BASE, { ...BASE, startTimeMicros: BASE.startTimeMicros - 3_600e6 }, "same"],
  ["another time namespace", BASE, { ...BASE, timeNamespace: "7" }, "unknown"],
  ["the same time namespace", { ...BASE, timeNamespace: "7" }, { ...BASE, timeNamespace: "7" }, "same"],
  ["unique ids that agree in another time namespace", { ...BASE, uniqueId: "4" }, { ...BASE, uniqueId: "4", timeNamespace: "7" }, "same"],
  ["unique ids that differ in one tick", { ...BASE, uniqueId: "4" }, { ...BASE, uniqueId: "5" }, "different"],
  ["a unique id on one side", { ...BASE, uniqueId: "4" }, BASE, "same"],
  ["no start since boot", without("startTimeSinceBootMicros"), without("startTimeSinceBootMicros"), "same"],
  ["no start since boot, one µs apart", without("startTimeSinceBootMicros"), { ...without("startTimeSinceBootMicros"), startTimeMicros: BASE.startTimeMicros + 1 }, "different"],
];

for (const [what, a, b, answer] of PAIRS) {
  test(`compared with ${what}: ${answer}`, () => {
    expect(compareIdentities(a, b)).toBe(answer);
    expect(compareIdentities(b, a)).toBe(answer);
    expect(compareIdentities(JSON.parse(JSON.stringify(a)) as ProcessIdentity, b)).toBe(answer);
  });
}

const LONG = "x".repeat(10_000_000);
const BAD: readonly (readonly [string, unknown])[] = [
  ["nothing", undefined],
  ["null", null],
  ["text", JSON.stringify(BASE)],
  ["an array", [BASE]],
  ["an empty object", {}],
  ...Object.keys(BASE)
    .filter((key) => !["bootId", "pidNamespace", "startTimeSinceBootMicros"].includes(key))
    .map((key) => [`no ${key}`, without(key as keyof typeof BASE)] as const),
  ["a pid as text", { ...BASE, pid: "700" }],
  ["a negative pid", { ...BASE, pid: -1 }],
  ["a pid too great", { ...BASE, pid: 2 ** 32 }],
  ["a start as text", { ...BASE, startTimeMicros: "1" }],
  ["an unsafe start", { ...BASE, startTimeMicros: 2 ** 53 }],
  ["a start that is no number", { ...BASE, startTimeSinceBootMicros: NaN }],
  ["a resolution of 0", { ...BASE, startTimeResolutionMicros: 0 }],
  ["a boot that is a number", { ...BASE, bootId: 5 }],
  ["a boot that is null", { ...BASE, bootId: null }],
  ["an empty boot", { ...BASE, bootId: "" }],
  ["a boot of 10 MB", { ...BASE, bootId: LONG }],
  ["a unique id of 10 MB", { ...BASE, uniqueId: "1".repeat(10_000_000) }],
  ["a unique id that is a number", { ...BASE, uniqueId: 4 }],
  ["a unique id with a leading zero", { ...BASE, uniqueId: "04" }],
  ["a namespace that is no number", { ...BASE, pidNamespace: "pid:[5]" }],
  ["exited as text", { ...BASE, exited: "false" }],
  ["facts of a prototype", Object.create(BASE)],
  ["facts of a parsed __proto__", JSON.parse(`{"__proto__": ${JSON.stringify(BASE)}}`)],
  ["a getter that throws", { ...BASE, get bootId(): string { throw new Error("getter"); } }],
];

for (const [what, value] of BAD) {
  test(`${what} is no identity`, () => {
    const invalid = expect.objectContaining({ name: "ProcSafeError", code: "invalid-argument" }) as Error;
    expect(() => compareIdentities(value as never, BASE)).toThrow(invalid);
    expect(() => compareIdentities(BASE, value as never)).toThrow(invalid);
    expect(() => inspectIdentity(value as never)).toThrow(invalid);
  });
}

test("keys of a newer version are left out, and a polluted prototype adds nothing", () => {
  expect(compareIdentities({ ...BASE, colour: LONG } as ProcessIdentity, BASE)).toBe("same");
  const proto = Object.prototype as Record<string, unknown>;
  proto["uniqueId"] = "1";
  proto["timeNamespace"] = "2";
  try {
    expect(compareIdentities(BASE, { ...BASE, startTimeSinceBootMicros: 1 })).toBe("different");
  } finally {
    delete proto["uniqueId"];
    delete proto["timeNamespace"];
  }
});

nativeTest("readBootIdentity", ["linux"], () => {
  const { bootId, pidNamespace } = readProcessIdentity(process.pid)!;
  expect(readBootIdentity()).toEqual({ bootId, pidNamespace });
  expect(Object.isFrozen(readBootIdentity())).toBe(true);
});

nativeTest("a child from its life to its end, through JSON", ["linux"], async () => {
  const child = spawn("sleep", ["1000"], { stdio: "ignore" });
  await new Promise((resolve) => child.once("spawn", resolve));
  const kept = JSON.parse(JSON.stringify(readProcessIdentity(child.pid ?? 0))) as ProcessIdentity;
  expect(inspectIdentity(kept)).toBe("live");
  expect(scriptValue(`report(procSafe.inspectIdentity(${JSON.stringify(kept)}))`)).toBe("live");
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGKILL");
  await closed;
  expect(inspectIdentity(kept)).toBe("gone");
  expect(inspectIdentity({ ...kept, bootId: "another" })).toBe("gone");
});

nativeTest("our own pid in a stale record is another process", ["linux"], () => {
  const own = readProcessIdentity(process.pid)!;
  expect(inspectIdentity(own)).toBe("live");
  const { uniqueId: _, ...old } = { ...own, startTimeSinceBootMicros: (own.startTimeSinceBootMicros ?? 0) - 10_000 };
  expect(inspectIdentity(old)).toBe("reused");
  expect(inspectIdentity({ ...own, bootId: "another" })).toBe("reused");
  expect(inspectIdentity({ ...own, startTimeMicros: own.startTimeMicros + 3_600e6 })).toBe("live");
});

nativeTest("a zombie has exited; an exiting process has not, nor one whose first thread alone has ended", ["linux", "root"], async () => {
  await whileHeld(["zombie"], ({ pid }) => expect(inspectIdentity(readProcessIdentity(pid)!)).toBe("exited"));
  await whileHeld(["leader-dead"], ({ pid }) => expect(inspectIdentity(readProcessIdentity(pid)!)).toBe("live"));
  await whileHeld(["exiting"], ({ pid }) => expect(inspectIdentity(readProcessIdentity(pid)!)).toBe("live"));
});

nativeTest("a pid that is recycled within a tick is told by its unique id", ["linux", "root", "pidfs inodes"], async () => {
  const recycler = start("recycler", ["set-tid"]);
  try {
    const pid = (await recycler.next())["pid"] as number;
    let last: ProcessIdentity | null = null;
    let ties = 0;
    for (let look = 0; look < 200_000 && ties < 200; look++) {
      const now = readProcessIdentity(pid);
      if (now !== null && last !== null && now.uniqueId !== last.uniqueId) {
        expect(compareIdentities(last, now)).toBe("different");
        if (now.startTimeSinceBootMicros === last.startTimeSinceBootMicros) ties++;
      }
      last = now ?? last;
    }
    expect(ties).toBe(200);
    expect(["reused", "gone"]).toContain(inspectIdentity({ ...last!, uniqueId: "3" }));
  } finally {
    await recycler.end();
  }
});

nativeTest("an identity of another pid namespace is unknown, both ways", ["linux", "root"], () => {
  const ours = readProcessIdentity(process.pid)!;
  const script = `report([procSafe.inspectIdentity(${JSON.stringify(ours)}), readProcessIdentity(process.pid)])`;
  const [there, theirs] = scriptValue<[string, ProcessIdentity]>(script, { launcher: inNamespace("", "root") });
  expect([there, inspectIdentity(theirs), compareIdentities(ours, theirs)]).toEqual(["unknown", "unknown", "unknown"]);
});

nativeTest("a container that is started again has nobody of its last life", ["linux", "root"], () => {
  // Each life has processes of the same few pids; the kernel may give its namespace the number of the last one's.
  const script = (kept: readonly ProcessIdentity[]): string => `
    const kept = ${JSON.stringify(kept)};
    const own = listProcesses().map(({ pid }) => readProcessIdentity(pid)).filter((identity) => identity !== null);
    report({ own, states: kept.map((one) => procSafe.inspectIdentity(one)), namespace: procSafe.readBootIdentity().pidNamespace });
  `;
  let kept: ProcessIdentity[] = [];
  let replayed = 0;
  for (let life = 0; life < 5; life++) {
    const { own, states, namespace } = scriptValue<{ own: ProcessIdentity[]; states: string[]; namespace: string }>(script(kept), { launcher: inNamespace("", "root") });
    for (const [index, old] of kept.entries()) {
      const possible = old.pidNamespace === namespace ? ["reused", "gone"] : ["unknown"];
      expect(possible).toContain(states[index]);
      for (const now of own) expect(compareIdentities(old, now)).not.toBe("same");
      replayed++;
    }
    expect(own.map(({ pid }) => pid)).toContain(1);
    kept = own;
  }
  expect(replayed).toBeGreaterThan(8);
});

nativeTest("in a time namespace ticks say nothing of a kept identity; a unique id does", ["linux", "root", "time namespaces", "pidfs inodes"], () => {
  const kept = readProcessIdentity(process.pid)!;
  const { uniqueId: _, ...ticks } = kept;
  const replay = `report([${[kept, ticks, { ...kept, uniqueId: "3" }].map((one) => `procSafe.inspectIdentity(${JSON.stringify(one)})`).join()}])`;
  expect(scriptValue(replay)).toEqual(["live", "live", "reused"]);
  for (const offset of [0, 1_000_000]) {
    const launcher = ["unshare", "--time", "--boottime", String(offset), "--fork"];
    expect(scriptValue(replay, { launcher })).toEqual(["live", "unknown", "reused"]);
  }
});

nativeTest("what the kernel refuses to describe is unknown; another boot is not", ["linux", "root"], () => {
  const script = `
    const own = readProcessIdentity(process.pid);
    const hidden = { ...own, pid: Number(process.env.STRANGER) };
    report([procSafe.inspectIdentity(hidden), procSafe.inspectIdentity({ ...hidden, bootId: "another" }), procSafe.inspectIdentity({ ...hidden, pid: 999999 })]);
  `;
  expect(scriptValue(script, { launcher: inNamespace("hidepid=2", "nobody") })).toEqual(["unknown", "reused", "gone"]);
  const subset = "report([attempt(() => procSafe.readBootIdentity()), procSafe.inspectIdentity(readProcessIdentity(process.pid))])";
  expect(scriptValue(subset, { launcher: inNamespace("subset=pid", "root") })).toEqual([{ code: "unsupported-platform" }, "live"]);
});
