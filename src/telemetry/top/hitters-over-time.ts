import { type Counted, HeavyHitters } from './heavy-hitters.js';

/** Slices that a span is covered by: one of them is being filled. */
export const SLICES = 7;

/** One slice as it was when it was read. */
interface ReadSlice<About> {
  readonly floor: number;
  readonly entries: Iterable<readonly [key: string, counted: Counted<About>]>;
}

/** What was counted of one key in a span: at least `count` less `error`, at most `count`. */
export interface Estimate<About> {
  /** Undefined where no slice keeps the key. */
  readonly about: About;
  readonly count: number;
  readonly error: number;
}

/** What was counted in a span. */
export interface ReadSpan<About> {
  /** Most that a key may have of which nothing is known, and that any estimate is too high. */
  readonly floor: number;
  /** How long it covers, microseconds. */
  readonly coversMicros: number;
  /** {@link HittersOverTime.add}: the greatest `every`. */
  readonly every: number;
  /** The newest first. */
  readonly slices: readonly ReadSlice<About>[];
}

interface Slice<About> {
  readonly hitters: HeavyHitters<About>;
  readonly startMicros: number;
  every: number;
}

/** {@link HeavyHitters} of the last minute, or hour: of slices of time, the oldest of which are forgotten. */
export class HittersOverTime<About> {
  readonly #sliceMicros: number;
  readonly #capacity: number;
  /** The oldest first; never empty. */
  #slices: readonly Slice<About>[];
  #newest: Slice<About>;

  constructor(capacity: number, sliceMicros: number, nowMicros: number) {
    this.#capacity = capacity;
    this.#sliceMicros = sliceMicros;
    this.#newest = this.#slice(nowMicros);
    this.#slices = [this.#newest];
  }

  /** What is known of a key now. */
  known(key: string): Counted<About> | undefined {
    return this.#newest.hitters.kept.get(key);
  }

  /** See {@link HeavyHitters.add}; `every`: the HitSampler's. */
  add(key: string, about: About, count: number, every: number): void {
    const slice = this.#newest;
    slice.hitters.add(key, about, count);
    if (every > slice.every) slice.every = every;
  }

  /** Begins a new slice where it is time to, and forgets those that are too old. */
  goOn(nowMicros: number): void {
    const newest = this.#newest;
    if (nowMicros - newest.startMicros < this.#sliceMicros) return;
    newest.hitters.trim();
    this.#newest = this.#slice(nowMicros);
    const oldest = nowMicros - SLICES * this.#sliceMicros;
    const kept = this.#slices.filter(({ startMicros }) => startMicros > oldest);
    this.#slices = [...kept.slice(1 - SLICES), this.#newest];
  }

  /** What was counted of one key. */
  estimate(key: string): Estimate<About | undefined> {
    let about: About | undefined;
    let count = 0;
    let error = 0;
    for (const { hitters } of this.#slices) {
      const counted = hitters.kept.get(key);
      // The newest slice is the last.
      about = counted?.about ?? about;
      count += counted?.count ?? hitters.floor;
      error += counted?.error ?? hitters.floor;
    }
    return { about, count, error };
  }

  /** All of the span as it is now. */
  read(nowMicros: number): ReadSpan<About> {
    const slices = [...this.#slices].reverse();
    const newest = this.#newest;
    return {
      floor: slices.reduce((sum, { hitters }) => sum + hitters.floor, 0),
      coversMicros: nowMicros - (this.#slices[0] as Slice<About>).startMicros,
      every: slices.reduce((most, { every }) => Math.max(most, every), 1),
      // The others do not change any more.
      slices: slices.map(({ hitters }) => ({
        floor: hitters.floor,
        entries: hitters === newest.hitters ? [...hitters.kept] : hitters.kept,
      })),
    };
  }

  #slice(startMicros: number): Slice<About> {
    return { hitters: new HeavyHitters<About>(this.#capacity), startMicros, every: 1 };
  }
}

/** Keys that are added up between two pauses. */
const STRETCH = 64;

/**
 * Adds up the slices of a span: an estimate of each key that is kept in any. '' is a pause, so that others have their
 * turn.
 */
export function* estimatesOf<About>({
  floor,
  slices,
}: ReadSpan<About>): Generator<'', Map<string, Estimate<About>>> {
  const sums = new Map<string, { readonly about: About; count: number; error: number }>();
  let added = 0;
  for (const slice of slices) {
    for (const [key, { about, count, error }] of slice.entries) {
      if (++added % STRETCH === 0) yield '';
      const sum = sums.get(key);
      // In a slice that does not keep it, a key may have that slice's floor.
      if (sum === undefined) {
        sums.set(key, { about, count: floor + count - slice.floor, error: floor + error - slice.floor });
      } else {
        sum.count += count - slice.floor;
        sum.error += error - slice.floor;
      }
    }
  }
  return sums;
}
