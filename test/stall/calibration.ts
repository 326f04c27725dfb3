import { createHash } from 'node:crypto';

const ROUNDS = 7;

/** Runs a fixed amount of work that resembles weir's: strings, maps and bytes. */
function work(): number {
  const counts = new Map<string, number>();
  const bytes = Buffer.alloc(4096, 'weir');
  let sum = 0;
  for (let i = 0; i < 60_000; i++) {
    const key = `descriptors[${i % 1000}].entries[${i % 7}]`;
    counts.set(key, (counts.get(key) ?? 0) + key.length);
    for (let at = 0; at < 200; at++) sum = (sum + (bytes[(i + at) & 4095] as number)) & 0xffff;
    if (i % 100 === 0) sum ^= createHash('sha256').update(bytes).digest()[0] as number;
  }
  return sum + counts.size;
}

/**
 * Returns the CPU milliseconds that this machine currently needs for a fixed loop, as the lowest of several rounds. The
 * costs of attacks are recorded as multiples of this time, so that cases do not fail on slower machines.
 */
export function calibrationMs(): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}
