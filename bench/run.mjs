// The benchmark: `pnpm bench [--rounds R] [--sizes N,N,…] [--only NAME;NAME]`. Every contender is a process
// of its own and is asked for one census a round, one after the other, so that all of them see the same
// machine; those that read in process take one untimed just before, so that none pays for having waited;
// figures are medians over the rounds of the ratio to a C program that makes the same reads and nothing
// else. Absolute times on a shared machine drift; ratios of one round do not.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildNative, buildTypeScript } from "../scripts/build.mjs";
import { installWith } from "../scripts/pnpm.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const BUILD = `${HERE}.build`;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "21" },
    sizes: { type: "string", default: "200,2000,10000" },
    only: { type: "string" },
  },
});
const ROUNDS = Number(values.rounds);
const SIZES = values.sizes.split(",").map(Number);

/** systeminformation answers a second call within 500 ms with the object of the first. */
const CACHED_FOR = { systeminformation: 510 };
const IDENTITIES = 500;

const js = (name, launcher = []) => ({ command: [...launcher, process.execPath, `${HERE}contender.mjs`, name] });
const CONTENDERS = {
  floor: { command: [`${BUILD}/floor`] },
  "floor beside threads": { command: [`${BUILD}/floor`, "10"] },
  "proc-safe": js("proc-safe"),
  // With one processor to run on it starts no thread.
  "proc-safe, one thread": js("proc-safe", ["taskset", "--cpu-list", "1"]),
  sysinfo: { command: [`${HERE}sysinfo/target/release/proc-safe-bench-sysinfo`] },
  psutil: { command: ["python3", `${HERE}contender.py`], env: { PYTHONPATH: `${BUILD}/python` } },
  ps: js("ps"),
  "ps-list": js("ps-list"),
  pidtree: js("pidtree"),
  "find-process": js("find-process"),
  systeminformation: js("systeminformation"),
};
const chosen = Object.keys(CONTENDERS).filter(
  (name) => name.startsWith("floor") || values.only === undefined || values.only.split(";").includes(name),
);

await build();
describeMachine();
for (const size of SIZES) {
  const sleepers = await start({ command: [`${BUILD}/sleepers`, String(size)] });
  try {
    await compareCensuses(size);
    if (size === SIZES[0]) {
      await compareIdentities();
      compareFirstCensus();
    }
    if (size === SIZES.at(-1)) await timeTrees();
  } finally {
    await sleepers.end();
  }
}

async function build() {
  mkdirSync(BUILD, { recursive: true });
  buildTypeScript();
  await buildNative();
  for (const name of ["floor", "sleepers"]) {
    execFileSync("cc", ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", `${BUILD}/${name}`, `${HERE}${name}.c`], { stdio: "inherit" });
  }
  installWith(["--dir", HERE, "--ignore-workspace"]);
  execFileSync("cargo", ["build", "--quiet", "--release", "--locked"], { cwd: `${HERE}sysinfo`, stdio: "inherit" });
  if (!existsSync(`${BUILD}/python/psutil`)) {
    execFileSync("python3", ["-m", "pip", "install", "--quiet", "--target", `${BUILD}/python`, "psutil==7.2.2"], { stdio: "inherit" });
  }
}

function describeMachine() {
  const model = cpus()[0]?.model ?? "unknown";
  print(`Linux ${release()}, ${cpus().length} × ${model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}`);
  print(`medians of ${ROUNDS} interleaved rounds; × is the ratio to the C floor of the same round\n`);
}

async function compareCensuses(size) {
  const running = new Map();
  for (const name of chosen) running.set(name, await start(CONTENDERS[name]));
  for (const one of running.values()) await one.ask("census"); // warm
  const samples = new Map(chosen.map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    const order = round % 2 === 0 ? chosen : chosen.toReversed();
    for (const name of order) {
      if (CACHED_FOR[name]) await pause(CACHED_FOR[name]);
      samples.get(name).push(await running.get(name).ask("census"));
    }
  }
  for (const one of running.values()) await one.end();
  print(`${size} extra processes (${median(samples.get("floor").map(({ rows }) => rows))} in all)`);
  printTable(
    ["", "ms", "× floor", "quartiles", "rows", "kernel", "ours"],
    chosen.map((name) => rowOf(name, samples.get(name), samples.get("floor"))),
  );
}

function rowOf(name, samples, floor) {
  const ratios = samples.map((sample, round) => sample.nanos / floor[round].nanos);
  const cpu = samples[0].user === undefined || name === "ps" ? undefined : median(samples.map(({ user, system }) => system / (user + system)));
  return [
    name,
    (median(samples.map(({ nanos }) => nanos)) / 1e6).toFixed(2),
    median(ratios).toFixed(2),
    `${quantile(ratios, 0.25).toFixed(2)}–${quantile(ratios, 0.75).toFixed(2)}`,
    String(median(samples.map(({ rows }) => rows))),
    cpu === undefined ? "" : `${Math.round(cpu * 100)} %`,
    cpu === undefined ? "" : `${Math.round((1 - cpu) * 100)} %`,
  ];
}

async function compareIdentities() {
  const target = spawn("sleep", ["100000"], { stdio: "ignore" });
  const floor = await start(CONTENDERS.floor);
  const ours = await start(CONTENDERS["proc-safe"]);
  const words = `identity ${target.pid} ${IDENTITIES}`;
  const pairs = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const pair = [(await floor.ask(words)).nanos, (await ours.ask(words)).nanos];
    if (round > 0) pairs.push(pair);
  }
  await floor.end();
  await ours.end();
  target.kill();
  print("one readProcessIdentity()");
  printTable(["", "µs", "× floor"], [
    ["floor", (median(pairs.map(([least]) => least)) / IDENTITIES / 1e3).toFixed(1), "1.00"],
    ["proc-safe", (median(pairs.map(([, all]) => all)) / IDENTITIES / 1e3).toFixed(1), median(pairs.map(([least, all]) => all / least)).toFixed(2)],
  ]);
}

/** They read nothing, so there is no floor. */
async function timeTrees() {
  const ours = await start(CONTENDERS["proc-safe"]);
  const rows = [];
  for (const [what, name] of [["forest", "buildForest"], ["descendants", "descendantsOf"], ["members", "membersOfGroup"]]) {
    const samples = [];
    for (let round = 0; round <= ROUNDS; round++) samples.push(await ours.ask(`tree ${what}`));
    const times = samples.slice(1).map(({ nanos }) => nanos / 1e6);
    const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => quantile(times, part).toFixed(2));
    rows.push([name, (samples[0].nanos / 1e6).toFixed(2), middle, `${low}–${high}`, String(samples[0].rows)]);
  }
  await ours.end();
  print("trees over the rows of one census");
  printTable(["", "first, ms", "ms", "quartiles", "rows"], rows);
}

function compareFirstCensus() {
  const time = (code) => {
    const start = process.hrtime.bigint();
    const { status } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { cwd: HERE, stdio: "ignore" });
    if (status !== 0) throw new Error(`node -e ended with ${status}`);
    return Number(process.hrtime.bigint() - start) / 1e6;
  };
  const census = `import { listProcesses } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)}; listProcesses();`;
  const nothing = "0";
  const extra = Array.from({ length: ROUNDS }, () => time(census) - time(nothing));
  print(`first census of a fresh process: ${median(extra).toFixed(1)} ms over node -e 0\n`);
}

/** Starts a contender and waits until it is ready. */
async function start({ command: [command, ...words], env = {} }) {
  const child = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const line = await lines.next();
    if (line.done) throw new Error(`${command} ${words.join(" ")} ended`);
    return line.value;
  };
  if ((await next()) !== "ready") throw new Error(`${command} is not ready`);
  return {
    async ask(what) {
      child.stdin.write(`${what}\n`);
      const [nanos, rows, user, system] = (await next()).split(" ").map(Number);
      return { nanos, rows, user, system };
    },
    end() {
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.stdin.end();
      return ended;
    },
  };
}

function median(numbers) {
  return quantile(numbers, 0.5);
}

function quantile(numbers, part) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * part)];
}

function printTable(head, rows) {
  const widths = head.map((title, index) => Math.max(title.length, ...rows.map((row) => row[index].length)));
  const line = (cells) => cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[index]))).join("  ").trimEnd();
  print([head, ...rows].map(line).join("\n") + "\n");
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
