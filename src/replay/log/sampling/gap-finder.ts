/** Shorter gaps are not reported. */
const LEAST_GAP_SECONDS = 60;
/** Time before a gap that shows how many requests are missing. */
const RATE_SECONDS = 600;
/** Requests that a gap must lack at the rate before it. */
const LEAST_MISSING = 1000;

/** A time without requests. */
export interface Gap {
  /** Seconds since 1970. */
  readonly fromSecond: number;
  readonly toSecond: number;
  /** Requests in the gap, had the rate before it continued. */
  readonly missing: number;
}

/** Finds times without requests that a constant rate cannot explain: parts of the log are probably missing. */
export class GapFinder {
  /** Number of gaps. */
  count = 0;
  longest: Gap | undefined;
  readonly #counts = new Uint32Array(RATE_SECONDS);
  #sum = 0;
  #first: number | undefined;
  #last = 0;

  /** Adds the number of requests of a second. Earlier seconds are ignored. */
  add(second: number, requests: number): void {
    this.#first ??= second;
    if (this.#first === second) this.#last = second - 1;
    if (second <= this.#last) return;
    const length = second - this.#last - 1;
    if (length >= LEAST_GAP_SECONDS) this.#judge(second, length);
    // After a long gap, every place is cleared once.
    const from = Math.max(this.#last + 1, second - RATE_SECONDS + 1);
    for (let each = from; each <= second; each++) this.#set(each, 0);
    this.#set(second, requests);
    this.#last = second;
  }

  #judge(second: number, length: number): void {
    const known = Math.min(RATE_SECONDS, this.#last - (this.#first as number) + 1);
    const missing = Math.round((this.#sum / known) * length);
    if (missing < LEAST_MISSING) return;
    this.count++;
    const gap = { fromSecond: this.#last + 1, toSecond: second, missing };
    if (this.longest === undefined || length > this.longest.toSecond - this.longest.fromSecond)
      this.longest = gap;
  }

  #set(second: number, requests: number): void {
    const place = ((second % RATE_SECONDS) + RATE_SECONDS) % RATE_SECONDS;
    this.#sum += requests - (this.#counts[place] as number);
    this.#counts[place] = requests;
  }
}
