// What two identities say of each other: whether they are of one process, and which was born first. Own keys
// only: what somebody did to Object.prototype is no fact.

import type { IdentityComparison, ProcessIdentity } from "./types.js";

/** `compareIdentities`, for identities that were checked. */
export function compare(a: ProcessIdentity, b: ProcessIdentity): IdentityComparison {
  const has = (key: keyof ProcessIdentity): boolean => own(a, key) !== undefined && own(b, key) !== undefined;
  const differs = (key: keyof ProcessIdentity): boolean => own(a, key) !== own(b, key);
  if (has("bootId") && differs("bootId")) return "different";
  // One process has a pid in each namespace that can see it, so these say nothing of each other.
  if (differs("pidNamespace")) return "unknown";
  if (differs("pid")) return "different";
  if (differs("bootId")) return "unknown";
  if (has("uniqueId")) return differs("uniqueId") ? "different" : "same";
  if (!has("startTimeSinceBootMicros")) return differs("startTimeMicros") ? "different" : "same";
  if (differs("timeNamespace")) return "unknown";
  return differs("startTimeSinceBootMicros") ? "different" : "same";
}

/** The facts of an identity that order births; every key is there. */
export interface Birth {
  readonly startTimeMicros: number;
  readonly startTimeSinceBootMicros: number | undefined;
  readonly uniqueId: string | undefined;
  readonly timeNamespace: string | undefined;
}

export function birthOf(identity: ProcessIdentity): Birth {
  return {
    startTimeMicros: identity.startTimeMicros,
    startTimeSinceBootMicros: own(identity, "startTimeSinceBootMicros"),
    uniqueId: own(identity, "uniqueId"),
    timeNamespace: own(identity, "timeNamespace"),
  };
}

/**
 * Below 0 where `a` was born before `b` of the same boot, above 0 where after, 0 in one tick. A unique id
 * orders only where there is no start since boot, which is on Darwin: Linux promises no order of its inodes.
 */
export function orderOfBirths(a: Birth, b: Birth): number {
  const { startTimeSinceBootMicros: bootA, uniqueId: idA } = a;
  const { startTimeSinceBootMicros: bootB, uniqueId: idB } = b;
  if (bootA !== undefined && bootB !== undefined && a.timeNamespace === b.timeNamespace) return bootA - bootB;
  if (bootA === undefined && bootB === undefined && idA !== undefined && idB !== undefined) {
    return idA.length - idB.length || (idA < idB ? -1 : Number(idA > idB));
  }
  return a.startTimeMicros - b.startTimeMicros;
}

function own<T extends object, Key extends keyof T>(facts: T, key: Key): T[Key] | undefined {
  return Object.hasOwn(facts, key) ? facts[key] : undefined;
}
