import type { Random } from './random.js';

/**
 * Returns `bytes` with some bytes changed, removed, repeated or inserted. The result is at most about twice as long.
 */
export function mutate(bytes: Buffer, random: Random): Buffer {
  let mutated: Buffer = Buffer.from(bytes);
  for (let times = 1 + random.below(3); times > 0; times--) mutated = mutateOnce(mutated, random);
  return mutated;
}

function mutateOnce(bytes: Buffer, random: Random): Buffer {
  if (bytes.length === 0) return random.bytes(random.below(4));
  const at = random.below(bytes.length);
  const length = Math.min(1 + random.below(4), bytes.length - at);
  const before = bytes.subarray(0, at);
  const after = bytes.subarray(at + length);
  switch (random.below(7)) {
    case 0:
      bytes[at] = (bytes[at] as number) ^ (1 << random.below(8));
      return bytes;
    case 1:
      bytes[at] = random.pick([0, 1, 0x7f, 0x80, 0xff, 0x1f, 0x3f, 0x20, 0x40]);
      return bytes;
    case 2:
      return Buffer.concat([before, random.bytes(length), after]);
    case 3:
      return Buffer.concat([before, after]);
    case 4:
      return Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
    case 5:
      return Buffer.concat([before, random.bytes(random.below(5)), bytes.subarray(at)]);
    default:
      return Buffer.from(before);
  }
}
