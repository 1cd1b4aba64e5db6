export function releaseNotes(changelog: string, version: string): string | undefined;
export function complaintsAbout(root: string, tag: string, repository?: string): string[];
export function prepare(root: string, version: string, date: string): void;
export function channelOf(tag: string): "latest" | "next";
