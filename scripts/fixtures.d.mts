// The types of fixtures.mjs.

export declare const FIXTURE_BUILD: string;
export declare function fixtureNames(): string[];
export declare function compileFixture(name: string): string;
