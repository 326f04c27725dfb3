/** So many calls a second are looked at, about; all of them while there are not more. */
export const SAMPLES_A_SECOND = 1000;
/** Past so many in a second the rest of it is looked at less often at once. */
const MOST_AT_FIRST = 2 * SAMPLES_A_SECOND;
/** Most hits that one sample stands for: a flood of calls that each bring 2^53 hits is looked at seldom enough, too. */
const MOST_EVERY = 2 ** 80;

/**
 * Looks at some of what is counted, so that counting costs a subtraction. Hits are counted off in stretches of
 * {@link every}, and of each stretch one hit is drawn by lot: whoever's it is counts as all of it. So nothing is
 * counted too often or too seldom on average, whatever rhythm callers have, and however many hits a call brings: a call
 * of many stretches counts as so many. While every call is looked at, all is counted as it is.
 *
 * Of n hits the estimate has a standard deviation of at most √(n × every).
 */
export class HitSampler {
  /** Hits that one sample stands for: a power of 2. */
  every = 1;
  private readonly random: () => number;
  /** Hits up to the next one that is drawn, it included. */
  private left = 1;
  /** Hits of its stretch behind that one. */
  private behind = 0;
  /** Calls looked at since the last {@link adapt}. */
  private looked = 0;
  private mostLooked = MOST_AT_FIRST;
  /** {@link left} after the last {@link adapt}. */
  private leftBefore = 1;

  /** @param random gives numbers from 0 to just below 1 */
  constructor(random: () => number) {
    this.random = random;
  }

  /** Counts `hits`, at least 1. Returns how many hits the call stands for: 0 where it was not drawn. */
  take(hits: number): number {
    this.left -= hits;
    return this.left > 0 ? 0 : this.drawn();
  }

  /**
   * To be called about once a second: looks at more calls, or fewer. A second without calls says nothing about the next
   * ones, which may be the same flood.
   */
  adapt(elapsedSeconds: number): void {
    // Past 2^53 a few calls change nothing of what is left.
    const isIdle = this.looked === 0 && this.left === this.leftBefore && Number.isSafeInteger(this.left);
    if (!isIdle) this.adaptTo(elapsedSeconds);
    this.leftBefore = this.left;
  }

  private adaptTo(elapsedSeconds: number): void {
    const { looked, mostLooked } = this;
    this.looked = 0;
    this.mostLooked = MOST_AT_FIRST;
    // What it was made in the middle of a second is not what a whole second asks for: the next one will tell.
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
    // How far the hits reach past the end of the stretch; not above 0 where they end in it.
    let past = -this.left - this.behind;
    if (past >= every) {
      const whole = Math.floor(past / every);
      points += whole;
      past -= whole * every;
    }
    let place = this.place();
    if (place <= past) {
      // They reach past the one that is drawn of the stretch in which they end, too.
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

  /** What is left of a stretch is dropped: it counts as much or as little as it would have, on average. */
  private lookEvery(times: number): void {
    this.every = Math.min(Math.max(this.every * times, 1), MOST_EVERY);
    const place = this.place();
    this.left = place;
    this.behind = this.every - place;
  }
}
