// The steps of a release (docs/releasing.md): `node scripts/release.mjs prepare VERSION`, `check TAG`, `notes TAG`,
// `channel TAG`, `pack [--install-tools]`, and `dry-run [--install-tools]`, which does all that the workflow does on one machine but
// publish.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildTypeScript } from "./build.mjs";
import { installWith } from "./pnpm.mjs";
import { channelOf, complaintsAbout, prepare, releaseNotes } from "./release-notes.mjs";
import { fail, ROOT, run } from "./run.mjs";

const USAGE = "usage: node scripts/release.mjs prepare VERSION | check TAG | notes TAG | channel TAG | pack [--install-tools] | dry-run [--install-tools]";
const [command, ...words] = process.argv.slice(2);
const TAKES = { prepare: /^[^-]\S*$/, check: /^[^-]\S*$/, notes: /^[^-]\S*$/, channel: /^[^-]\S*$/, pack: /^(--install-tools)?$/, "dry-run": /^(--install-tools)?$/ };
if (!Object.hasOwn(TAKES, command ?? "") || !TAKES[command].test(words.join(" "))) fail(USAGE);

if (command === "prepare") prepare(ROOT, words[0], new Date().toISOString().slice(0, 10));
if (command === "check") check(words[0]);
if (command === "notes") notes(words[0]);
if (command === "channel") process.stdout.write(`${channelOf(words[0])}\n`);
if (command === "pack") pack();
if (command === "dry-run") dryRun();

function check(tag) {
  const complaints = complaintsAbout(ROOT, tag, process.env.GITHUB_REPOSITORY);
  if (complaints.length > 0) fail(`${tag} is no release: ${complaints.join("; ")}`);
  process.stdout.write(`${tag} is what all files say\n`);
}

function notes(tag) {
  const text = releaseNotes(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"), tag.replace(/^v/, ""));
  if (!text) fail(`CHANGELOG.md has nothing about ${tag}`);
  process.stdout.write(`${text}\n`);
}

/** The binaries come last: a development build would put one for this machine alone among them. */
function pack() {
  installWith([]);
  buildTypeScript();
  rmSync(join(ROOT, "prebuilds"), { recursive: true, force: true });
  run(process.execPath, ["scripts/cross.mjs", ...words]);
  run(process.execPath, ["scripts/pack-check.mjs", "--all-targets"]);
  run("npm", ["pack", "--silent", "--ignore-scripts"]);
}

function dryRun() {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  check(`v${version}`);
  pack();
  const tarball = join(ROOT, `proc-safe-${version}.tgz`);
  if (!existsSync(tarball)) fail(`${tarball} was not made`);
  run(process.execPath, ["scripts/package-smoke.mjs", tarball]);
  run("npm", ["publish", tarball, "--dry-run", "--access", "public", "--tag", channelOf(version)]);
  notes(`v${version}`);
}
