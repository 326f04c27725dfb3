import { createHash } from 'node:crypto';
import { identityOf, type Mutation } from './mutations.js';

/** The folder of src/ that a source file lies in: `limiter` for `src/limiter/calendar.ts`. */
export function roomOf(path: string): string {
  return path.split('/')[1] as string;
}

/** Divides `count` among rooms by their lines: the largest remainders get what is left over. */
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
 * Draws as many mutations of each room as its share says. Each mutation draws a lot from the seed and its identity
 * alone, and the lowest lots win, so that a change elsewhere in the source hardly changes the sample.
 */
export function draw(
  mutations: readonly Mutation[],
  shares: ReadonlyMap<string, number>,
  seed: number,
): Mutation[] {
  const lot = (one: Mutation) =>
    createHash('sha256')
      .update(`${seed}\0${identityOf(one)}`)
      .digest('hex');
  const drawn = mutations.map((mutation) => ({ mutation, lot: lot(mutation) }));
  drawn.sort((a, b) => (a.lot < b.lot ? -1 : 1));
  const left = new Map(shares);
  return drawn.flatMap(({ mutation }) => {
    const room = roomOf(mutation.path);
    const open = left.get(room) ?? 0;
    left.set(room, open - 1);
    return open > 0 ? [mutation] : [];
  });
}
