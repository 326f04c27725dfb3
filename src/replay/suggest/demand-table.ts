import { SPOKEN_RATES } from './spoken-rates.js';

const RATES = Float64Array.from(SPOKEN_RATES, ({ perSecond }) => perSecond);
const RATE_COUNT = RATES.length;

/** Series that share an array. */
const PAGE_BITS = 10;
const PAGE_SIZE = 2 ** PAGE_BITS;
const PAGE_MASK = PAGE_SIZE - 1;

/** Places of the numbers of a series in `facts`. */
const LAST_MICROS = 0;
const BACKLOGGED = 1;
const LAST_HITS = 2;
const MAX_HITS = 3;
const REQUESTS = 4;
const HITS = 5;
/** For each window: its number, its hits, and the most hits of a window. */
const WINDOWS = 6;
const FACT_COUNT = 15;

/** Windows that are counted: a minute, an hour, a day in UTC. In microseconds. */
const WINDOW_MICROS = [60e6, 3600e6, 86_400e6] as const;
export const MINUTE = 0;
export const HOUR = 1;
export const DAY = 2;
export type CountedWindow = typeof MINUTE | typeof HOUR | typeof DAY;

interface Page {
  /**
   * Two numbers for each rate of a series: its backlog, which is the number of tokens missing from a bucket of any
   * capacity, and the largest backlog so far. They are adjacent to share cache lines.
   */
  readonly backlogs: Float32Array;
  readonly facts: Float64Array;
}

/**
 * The demand of series, each of which is a caller of a route group. For each of {@link SPOKEN_RATES}, it keeps the
 * smallest burst with which a token bucket of that rate would have denied nothing. A series takes about 1.1 KB,
 * regardless of the number of its requests.
 */
export class DemandTable {
  #count = 0;
  readonly #pages: Page[] = [];

  get count(): number {
    return this.#count;
  }

  /** Adds a series, and returns its index. */
  add(): number {
    if ((this.#count & PAGE_MASK) === 0) {
      this.#pages.push({
        backlogs: new Float32Array(PAGE_SIZE * RATE_COUNT * 2),
        facts: new Float64Array(PAGE_SIZE * FACT_COUNT),
      });
    }
    return this.#count++;
  }

  /** Counts a request. `micros` never decreases for a series. */
  observe(series: number, micros: number, hits: number): void {
    const { backlogs, facts } = this.#page(series);
    const fact = (series & PAGE_MASK) * FACT_COUNT;
    const first = (series & PAGE_MASK) * RATE_COUNT * 2;
    const seconds = (micros - (facts[fact + LAST_MICROS] as number)) / 1e6;
    const backlogged = facts[fact + BACKLOGGED] as number;
    const lastHits = facts[fact + LAST_HITS] as number;
    // A higher rate never has a larger backlog, so the first rate without a backlog ends the loop. From `backlogged`
    // on, the backlog after the last request was that request alone, and is not stored.
    let rate = 0;
    for (let at = first; rate < RATE_COUNT; rate++, at += 2) {
      const before = rate < backlogged ? (backlogs[at] as number) : lastHits;
      const rest = before - (RATES[rate] as number) * seconds;
      if (rest <= 0) break;
      const backlog = rest + hits;
      backlogs[at] = backlog;
      if (backlog > (backlogs[at + 1] as number)) backlogs[at + 1] = backlog;
    }
    facts[fact + BACKLOGGED] = rate;
    facts[fact + LAST_HITS] = hits;
    facts[fact + LAST_MICROS] = micros;
    if (hits > (facts[fact + MAX_HITS] as number)) facts[fact + MAX_HITS] = hits;
    facts[fact + REQUESTS] = (facts[fact + REQUESTS] as number) + 1;
    facts[fact + HITS] = (facts[fact + HITS] as number) + hits;
    for (let window = 0; window < WINDOW_MICROS.length; window++) {
      const at = fact + WINDOWS + 3 * window;
      const number = Math.floor(micros / (WINDOW_MICROS[window] as number));
      const count = facts[at] === number ? (facts[at + 1] as number) + hits : hits;
      facts[at] = number;
      facts[at + 1] = count;
      if (count > (facts[at + 2] as number)) facts[at + 2] = count;
    }
  }

  /** Returns the smallest burst with which a bucket with the rate `SPOKEN_RATES[rate]` would have denied nothing. */
  burst(series: number, rate: number): number {
    const { backlogs, facts } = this.#page(series);
    const most = backlogs[((series & PAGE_MASK) * RATE_COUNT + rate) * 2 + 1] as number;
    const maxHits = facts[(series & PAGE_MASK) * FACT_COUNT + MAX_HITS] as number;
    // Backlogs are rounded to 24 bits.
    return Math.max(maxHits, Math.ceil(most * (1 - 1e-5)));
  }

  /**
   * Returns the most hits within `seconds`, wherever they begin. The number can be too high by the distance between two
   * rates, and for uneven demand by more, but it is never too low.
   */
  busiest(series: number, seconds: number): number {
    let least = Number.POSITIVE_INFINITY;
    for (let rate = 0; rate < RATE_COUNT; rate++) {
      least = Math.min(least, this.burst(series, rate) + (RATES[rate] as number) * seconds);
    }
    return least;
  }

  /** Returns the most hits in a minute, an hour or a day that begins on the clock. */
  busiestWindow(series: number, window: CountedWindow): number {
    return this.#fact(series, WINDOWS + 3 * window + 2);
  }

  requests(series: number): number {
    return this.#fact(series, REQUESTS);
  }

  hits(series: number): number {
    return this.#fact(series, HITS);
  }

  #fact(series: number, place: number): number {
    return this.#page(series).facts[(series & PAGE_MASK) * FACT_COUNT + place] as number;
  }

  #page(series: number): Page {
    return this.#pages[series >> PAGE_BITS] as Page;
  }
}
