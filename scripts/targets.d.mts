// The types of targets.mjs.

export interface Target {
  readonly triple: string;
  readonly library: string;
  readonly oldest: Readonly<Record<string, string>>;
  readonly execution: string | undefined;
  readonly runner: string | undefined;
}

export declare const TARGETS: Readonly<Record<string, Target>>;
export declare function platformTable(): string[];
