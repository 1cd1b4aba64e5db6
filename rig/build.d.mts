// The types of what tests use of build.mjs.

export declare const BUILD: string;
export declare const RIG: string;
export declare const MODULES: Readonly<Record<"zig" | "lld-dyld-info" | "lld-chained", string>>;
export declare function findZig(): string | undefined;
export declare function darwinCompiler(words: readonly string[], machine?: "x86_64" | "aarch64"): void;
export declare function whyNoRig(): string | undefined;
export declare function buildRig(): boolean;
export declare function buildModules(): string[];
