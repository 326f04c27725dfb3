/** Shorter gaps are not reported. */
const LEAST_GAP_SECONDS = 60;
/** Time before a gap that shows how many requests are missing. */
const RATE_SECONDS = 600;
/** Requests that a gap must lack at the rate before it. */
const LEAST_MISSING = 1000;

/** Requests before and after a gap without which a few wrong times would explain it. */
const LEAST_REQUESTS = 10;

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
  /** A gap that ends when enough requests come after it, and the rate of requests before it. */
  #gap: { readonly fromSecond: number; readonly toSecond: number; readonly rate: number } | undefined;
  #requestsAfter = 0;

  /** Adds the number of requests of a second. Earlier seconds are ignored. */
  add(second: number, requests: number): void {
    this.#first ??= second;
    if (this.#first === second) this.#last = second - 1;
    if (second <= this.#last) return;
    if (second - this.#last - 1 >= LEAST_GAP_SECONDS) this.#beginGap(second);
    this.#requestsAfter += requests;
    if (this.#requestsAfter >= LEAST_REQUESTS) this.#endGap();
    // After a long gap, every place is cleared once.
    const from = Math.max(this.#last + 1, second - RATE_SECONDS + 1);
    for (let each = from; each <= second; each++) this.#set(each, 0);
    this.#set(second, requests);
    this.#last = second;
  }

  /** Begins a gap before a second, or continues the previous gap if only a few requests were between them. */
  #beginGap(second: number): void {
    const known = Math.min(RATE_SECONDS, this.#last - (this.#first as number) + 1);
    if (this.#gap === undefined && this.#sum < LEAST_REQUESTS) return;
    const { fromSecond, rate } = this.#gap ?? { fromSecond: this.#last + 1, rate: this.#sum / known };
    this.#gap = { fromSecond, rate, toSecond: second };
    this.#requestsAfter = 0;
  }

  #endGap(): void {
    if (this.#gap === undefined) return;
    const { fromSecond, toSecond, rate } = this.#gap;
    this.#gap = undefined;
    const length = toSecond - fromSecond;
    const missing = Math.round(rate * length);
    if (missing < LEAST_MISSING) return;
    this.count++;
    if (this.longest === undefined || length > this.longest.toSecond - this.longest.fromSecond)
      this.longest = { fromSecond, toSecond, missing };
  }

  #set(second: number, requests: number): void {
    const place = ((second % RATE_SECONDS) + RATE_SECONDS) % RATE_SECONDS;
    this.#sum += requests - (this.#counts[place] as number);
    this.#counts[place] = requests;
  }
}
