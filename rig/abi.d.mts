// The types of what tests use of abi.mjs.

export declare function isCurrent(): boolean;
