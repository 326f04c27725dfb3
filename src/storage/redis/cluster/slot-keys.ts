/** Number of slots in a Redis Cluster. */
export const SLOTS = 16_384;

/**
 * Returns the slot of a key: the slot of its hash tag, if it has one (Redis Cluster specification, "Key distribution
 * model").
 */
export const slotOfKey = require('cluster-key-slot') as (key: string) => number;

/** Returns a random hash tag whose slot satisfies `isOwn`, or undefined if no slot does. */
export function tagOfSlots(isOwn: (slot: number) => boolean): string | undefined {
  const first = Math.floor(Math.random() * 64 * SLOTS);
  for (let i = first; i < first + 64 * SLOTS; i++) {
    const tag = i.toString(36);
    if (isOwn(slotOfKey(tag))) return tag;
  }
  return undefined;
}
