/** Approximate number of calls per second that are sampled. At lower rates, every call is. */
export const SAMPLES_A_SECOND = 1000;
/** Number of samples in a second after which the sampling rate drops immediately. */
const MOST_AT_FIRST = 2 * SAMPLES_A_SECOND;
/** Maximum number of hits per sample, which also bounds the samples of a flood of calls with 2^53 hits each. */
const MOST_EVERY = 2 ** 80;

/**
 * Samples hits, so that counting costs a subtraction. Hits are divided into stretches of {@link every} hits, and one
 * random hit of each stretch is drawn. Its call counts for the whole stretch. The estimate is therefore unbiased for
 * any pattern of calls and any number of hits: a call that spans many stretches counts for all of them. At 1 hit per
 * sample, counts are exact.
 *
 * For n hits, the standard deviation of the estimate is at most √(n × every).
 */
export class HitSampler {
  /** Number of hits per sample, a power of 2. */
  every = 1;
  private readonly random: () => number;
  /** Hits up to and including the next drawn hit. */
  private left = 1;
  /** Hits of the same stretch after the drawn hit. */
  private behind = 0;
  /** Number of samples since the last {@link adapt}. */
  private looked = 0;
  private mostLooked = MOST_AT_FIRST;
  /** {@link left} after the last {@link adapt}. */
  private leftBefore = 1;

  /** @param random returns numbers from 0 to just below 1 */
  constructor(random: () => number) {
    this.random = random;
  }

  /** Counts `hits`, at least 1. Returns the number of hits that the call stands for, or 0 if it was not drawn. */
  take(hits: number): number {
    this.left -= hits;
    return this.left > 0 ? 0 : this.drawn();
  }

  /**
   * Adjusts the sampling rate. To be called about once a second. A second without calls does not change the rate,
   * because the next calls may be part of the same flood.
   */
  adapt(elapsedSeconds: number): void {
    // Beyond 2^53, a few hits do not change the number that is left.
    const isIdle = this.looked === 0 && this.left === this.leftBefore && Number.isSafeInteger(this.left);
    if (!isIdle) this.adaptTo(elapsedSeconds);
    this.leftBefore = this.left;
  }

  private adaptTo(elapsedSeconds: number): void {
    const { looked, mostLooked } = this;
    this.looked = 0;
    this.mostLooked = MOST_AT_FIRST;
    // The rate was reduced within this second, so the next whole second decides.
    if (mostLooked > MOST_AT_FIRST) return;
    const rate = looked / Math.max(elapsedSeconds, 0.001);
    if (rate > SAMPLES_A_SECOND) this.lookEvery(2 ** Math.ceil(Math.log2(rate / SAMPLES_A_SECOND)));
    else if (rate <= SAMPLES_A_SECOND / 2 && this.every > 1) {
      this.lookEvery(2 ** -Math.floor(Math.log2(SAMPLES_A_SECOND / Math.max(rate, 1))));
    }
  }

  private drawn(): number {
    const { every } = this;
    let points = 1;
    // Number of hits beyond the end of the stretch; at most 0 if they end in it.
    let past = -this.left - this.behind;
    if (past >= every) {
      const whole = Math.floor(past / every);
      points += whole;
      past -= whole * every;
    }
    let place = this.place();
    if (place <= past) {
      // The hits also include the drawn hit of the stretch in which they end.
      points++;
      past -= every;
      place = this.place();
    }
    this.left = place - past;
    this.behind = every - place;
    if (++this.looked >= this.mostLooked) {
      this.mostLooked += SAMPLES_A_SECOND;
      this.lookEvery(2);
    }
    return points * every;
  }

  private place(): number {
    return this.every === 1 ? 1 : 1 + Math.floor(this.random() * this.every);
  }

  /**
   * Changes the number of hits per sample. The rest of the current stretch is dropped, which does not change the
   * expected count.
   */
  private lookEvery(times: number): void {
    this.every = Math.min(Math.max(this.every * times, 1), MOST_EVERY);
    const place = this.place();
    this.left = place;
    this.behind = this.every - place;
  }
}
