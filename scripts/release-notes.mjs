// What a release is called, in every file that says it, and what CHANGELOG.md says of it. Reads and writes nothing else.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where the version stands: what is before it, and it. */
const PLACES = {
  "package.json": /("version": ")([^"]*)/g,
  "Cargo.toml": /(^version = ")([^"]*)/gm,
  "Cargo.lock": /(^name = "proc-safe-(?:addon|core)"\nversion = ")([^"]*)/gm,
  "src/native.ts": /(^const VERSION = ")([^"]*)/gm,
};
const CHANGELOG = "CHANGELOG.md";
const UNRELEASED = "## [Unreleased]\n";

/** The part of a changelog that is about one version, without its heading; `undefined` if there is none. */
export function releaseNotes(changelog, version) {
  const sections = changelog.split(/^## /m).slice(1);
  const [section] = sections.filter((text) => text.startsWith(`[${version}] - `));
  return section?.replace(/^.*\n/, "").trim();
}

/** What npm calls the newest of a kind: nobody gets a release before a release who has not asked for one. */
export function channelOf(tag) {
  return tag.includes("-") ? "next" : "latest";
}

/** Everything that keeps `tag` from being a release of the project at `root`, which is at `repository` if that is known. */
export function complaintsAbout(root, tag, repository) {
  const read = (file) => readFileSync(join(root, file), "utf8");
  const version = tag.replace(/^v/, "");
  const complaints = isVersion(version) && tag !== version ? [] : [`${tag} is not v and a version`];
  for (const [file, place] of Object.entries(PLACES)) {
    const found = [...read(file).matchAll(place)].map(([, , text]) => text);
    if (found.length === 0 || found.some((text) => text !== version)) complaints.push(`${file} says ${found.join(", ") || "nothing"}`);
  }
  const notes = releaseNotes(read(CHANGELOG), version);
  if (!notes) complaints.push(`${CHANGELOG} has nothing about ${version}`);
  const { repository: ours } = JSON.parse(read("package.json"));
  if (repository !== undefined && !(ours?.url ?? "").includes(`/${repository}.git`)) {
    complaints.push(`package.json names the repository ${ours?.url ?? "nowhere"}, which provenance compares with ${repository}`);
  }
  return complaints;
}

/** Makes the next release of what is at `root`: its version everywhere, and what was unreleased under its heading. */
export function prepare(root, version, date) {
  if (!isVersion(version)) throw new Error(`${version} is no version`);
  const changelog = readFileSync(join(root, CHANGELOG), "utf8");
  const [top, after] = changelog.split(UNRELEASED);
  if (after === undefined || after.split(/^## /m)[0].trim() === "") throw new Error(`${CHANGELOG} has nothing unreleased`);
  writeFileSync(join(root, CHANGELOG), `${top}${UNRELEASED}\n## [${version}] - ${date}\n${after}`);
  for (const [file, place] of Object.entries(PLACES)) {
    const path = join(root, file);
    writeFileSync(path, readFileSync(path, "utf8").replace(place, (_, before) => `${before}${version}`));
  }
}

function isVersion(text) {
  return /^\d+\.\d+\.\d+(-[\w.]+)?$/.test(text);
}
