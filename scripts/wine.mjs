// Runs the real node.exe under wine on Debian: what that needs, and a wine of one's own.

import { spawnSync } from "node:child_process";
import { existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { fetchNode, WINDOWS_NODE } from "./nodes.mjs";
import { fail, run } from "./run.mjs";
import { MINGW } from "./targets.mjs";

const DEBIAN_PACKAGES = ["wine", "wine64"];
const WINE = "/usr/bin/wine";
const WINESERVER = "/usr/bin/wineserver";
const MINUTE = 60_000;

export function installWine() {
  run(process.execPath, ["scripts/cross.mjs", "--install-tools", "win32-x64"]);
  if (![WINE, WINESERVER].every(existsSync)) {
    run("apt-get", ["update", "--quiet"]);
    run("apt-get", ["install", "--yes", "--quiet", "--no-install-recommends", ...DEBIAN_PACKAGES]);
  }
  fetchNode("win32-x64");
}

/**
 * A wine of its own, in `scratch`, which is all that is ended with this process. Returns what runs node.exe in it: its
 * exit status. What it prints goes to the file `said`.
 */
export function startWine(scratch, more = {}) {
  for (const tool of [MINGW, WINE, WINESERVER, WINDOWS_NODE]) {
    if (!existsSync(tool)) fail(`${tool} is missing: node scripts/windows.mjs --install-tools (Debian, as root)`);
  }
  const env = {
    ...process.env,
    LC_ALL: "C.UTF-8", // wine writes the names of files in it
    WINEPREFIX: join(scratch, "prefix"),
    WINEDEBUG: "-all",
    WINEDLLOVERRIDES: "mscoree,mshtml=",
    NODE_SKIP_PLATFORM_CHECK: "1",
    PROC_SAFE_NATIVE: "require",
    ...more,
  };
  const said = join(scratch, "said");
  const output = openSync(said, "w+"); // a pipe would end Node's start
  const wine = (words, timeout) => {
    const options = { cwd: scratch, env, stdio: ["ignore", output, output], timeout, killSignal: "SIGKILL" };
    return spawnSync(WINE, words, options).status;
  };
  process.prependListener("exit", () => spawnSync(WINESERVER, ["--kill"], { env, stdio: "ignore", timeout: MINUTE }));
  if (wine(["wineboot", "--init"], 3 * MINUTE) !== 0) fail("wine cannot make its prefix");
  const system = join(env.WINEPREFIX, "drive_c/windows/system32");
  compile(MINGW, "test/windows/prng.c", join(system, "bcryptprimitives.dll"), ["-shared", "-ladvapi32"]);
  return { node: (words) => wine([WINDOWS_NODE, ...words], 5 * MINUTE), said };
}

export function compile(compiler, source, program, more = []) {
  run(compiler, ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source, ...more], { timeout: MINUTE });
}

/** Wine shows the whole file system as a drive. */
export function windowsPath(path) {
  return `Z:${path.replaceAll("/", "\\")}`;
}
