// Runs a C fixture around a look: the condition is proved before and after.

import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { expect } from "vitest";
import { fixturePath } from "./paths.ts";

export interface Held {
  readonly pid: number;
  /** The fixture itself, parent of `pid`. */
  readonly parent: number;
  /** A second process or thread, where the state has one. */
  readonly helper: number;
}

/** Brings a process into a state, looks at it, and proves that the state held all the while. */
export async function whileHeld(
  words: readonly string[],
  look: (held: Held) => void | Promise<void>,
): Promise<void> {
  const fixture = start("states", words);
  try {
    const held = (await fixture.next()) as unknown as Held & { ready: boolean };
    expect(held.ready).toBe(true);
    await look(held);
    fixture.write("check\n");
    expect(await fixture.next(), "the state did not hold").toEqual({ still: true });
  } finally {
    await fixture.end();
  }
}

export interface Running {
  /** The next line that it prints, as JSON. */
  next(): Promise<Record<string, unknown>>;
  write(text: string): void;
  /** Ends its standard input and waits until it has ended. */
  end(): Promise<void>;
}

export function start(name: string, words: readonly string[]): Running {
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(fixturePath(name), words, {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => resolve(`ended with ${code ?? signal}`));
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async next() {
      const line = await lines.next();
      if (line.done) throw new Error(`${name} ${words.join(" ")} ${await ended}`);
      return JSON.parse(line.value) as Record<string, unknown>;
    },
    write(text) {
      child.stdin.write(text);
    },
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}
