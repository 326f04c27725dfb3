import { createHash } from 'node:crypto';
import { identityOf, type Mutation } from './mutations.js';

/** Returns the room of a source file: `limiter` for `src/limiter/calendar.ts`. */
export function roomOf(path: string): string {
  return path.split('/')[1] as string;
}

/** Divides `count` among rooms in proportion to their lines of source, by the largest remainder method. */
export function sharesOf(linesOfRooms: ReadonlyMap<string, number>, count: number): Map<string, number> {
  const lines = [...linesOfRooms.values()].reduce((sum, one) => sum + one, 0);
  const exact = [...linesOfRooms].map(([room, own]) => ({ room, share: (count * own) / lines }));
  const shares = new Map(exact.map(({ room, share }) => [room, Math.floor(share)]));
  const remainder = ({ share }: { share: number }) => share - Math.floor(share);
  const left = count - [...shares.values()].reduce((sum, one) => sum + one, 0);
  for (const { room } of exact.sort((a, b) => remainder(b) - remainder(a)).slice(0, left))
    shares.set(room, (shares.get(room) as number) + 1);
  return shares;
}

/**
 * Draws a sample of mutations with the given number for each room. The sample contains the mutations with the lowest
 * hashes of the seed and their identity, so that a change of the source hardly changes the sample.
 */
export function draw(
  mutations: readonly Mutation[],
  shares: ReadonlyMap<string, number>,
  seed: number,
): Mutation[] {
  const hashOf = (mutation: Mutation) =>
    createHash('sha256')
      .update(`${seed}\0${identityOf(mutation)}`)
      .digest('hex');
  const hashed = mutations.map((mutation) => ({ mutation, hash: hashOf(mutation) }));
  hashed.sort((a, b) => (a.hash < b.hash ? -1 : 1));
  const remaining = new Map(shares);
  return hashed.flatMap(({ mutation }) => {
    const room = roomOf(mutation.path);
    const count = remaining.get(room) ?? 0;
    remaining.set(room, count - 1);
    return count > 0 ? [mutation] : [];
  });
}
