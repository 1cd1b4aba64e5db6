// The types of artifact.mjs.

export declare function complaintsAbout(name: string, bytes: Buffer): string[];
