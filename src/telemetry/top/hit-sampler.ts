/** Approximate number of calls per second that are sampled. At lower rates, every call is. */
export const SAMPLES_PER_SECOND = 1000;
/** Number of samples in a second after which the sampling rate drops immediately. */
const BURST_SAMPLES = 2 * SAMPLES_PER_SECOND;
/** Maximum number of hits per sample, which also bounds the samples of a flood of calls with 2^53 hits each. */
const MAX_HITS_PER_SAMPLE = 2 ** 80;

/**
 * Samples hits, so that counting costs a subtraction. Hits are divided into stretches of {@link hitsPerSample} hits,
 * and one random hit of each stretch is drawn. Its call counts for the whole stretch. The estimate is therefore
 * unbiased for any pattern of calls and any number of hits: a call that spans many stretches counts for all of them. At
 * 1 hit per sample, counts are exact.
 *
 * For n hits, the standard deviation of the estimate is at most √(n × every).
 */
export class HitSampler {
  /** Number of hits per sample, a power of 2. */
  hitsPerSample = 1;
  private readonly random: () => number;
  /** Hits up to and including the next drawn hit. */
  private hitsUntilSample = 1;
  /** Hits of the same stretch after the drawn hit. */
  private hitsAfterSample = 0;
  /** Number of samples since the last {@link adapt}. */
  private samples = 0;
  private maxSamples = BURST_SAMPLES;
  /** {@link hitsUntilSample} after the last {@link adapt}. */
  private previousHitsUntilSample = 1;

  /** @param random returns numbers from 0 to just below 1 */
  constructor(random: () => number) {
    this.random = random;
  }

  /** Counts `hits`, at least 1. Returns the number of hits that the call stands for, or 0 if it was not drawn. */
  take(hits: number): number {
    this.hitsUntilSample -= hits;
    return this.hitsUntilSample > 0 ? 0 : this.sample();
  }

  /**
   * Adjusts the sampling rate. To be called about once a second. A second without calls does not change the rate,
   * because the next calls may be part of the same flood.
   */
  adapt(elapsedSeconds: number): void {
    // Beyond 2^53, a few hits do not change the number that is left.
    const isIdle =
      this.samples === 0 &&
      this.hitsUntilSample === this.previousHitsUntilSample &&
      Number.isSafeInteger(this.hitsUntilSample);
    if (!isIdle) this.adaptTo(elapsedSeconds);
    this.previousHitsUntilSample = this.hitsUntilSample;
  }

  private adaptTo(elapsedSeconds: number): void {
    const { samples, maxSamples } = this;
    this.samples = 0;
    this.maxSamples = BURST_SAMPLES;
    // The rate was reduced within this second, so the next whole second decides.
    if (maxSamples > BURST_SAMPLES) return;
    const rate = samples / Math.max(elapsedSeconds, 0.001);
    if (rate > SAMPLES_PER_SECOND) this.scale(2 ** Math.ceil(Math.log2(rate / SAMPLES_PER_SECOND)));
    else if (rate <= SAMPLES_PER_SECOND / 2 && this.hitsPerSample > 1) {
      this.scale(2 ** -Math.floor(Math.log2(SAMPLES_PER_SECOND / Math.max(rate, 1))));
    }
  }

  private sample(): number {
    const { hitsPerSample } = this;
    let stretches = 1;
    // Number of hits beyond the end of the stretch; at most 0 if they end in it.
    let past = -this.hitsUntilSample - this.hitsAfterSample;
    if (past >= hitsPerSample) {
      const whole = Math.floor(past / hitsPerSample);
      stretches += whole;
      past -= whole * hitsPerSample;
    }
    let drawPosition = this.drawPosition();
    if (drawPosition <= past) {
      // The hits also include the drawn hit of the stretch in which they end.
      stretches++;
      past -= hitsPerSample;
      drawPosition = this.drawPosition();
    }
    this.hitsUntilSample = drawPosition - past;
    this.hitsAfterSample = hitsPerSample - drawPosition;
    if (++this.samples >= this.maxSamples) {
      this.maxSamples += SAMPLES_PER_SECOND;
      this.scale(2);
    }
    return stretches * hitsPerSample;
  }

  private drawPosition(): number {
    return this.hitsPerSample === 1 ? 1 : 1 + Math.floor(this.random() * this.hitsPerSample);
  }

  /**
   * Changes the number of hits per sample. The rest of the current stretch is dropped, which does not change the
   * expected count.
   */
  private scale(times: number): void {
    this.hitsPerSample = Math.min(Math.max(this.hitsPerSample * times, 1), MAX_HITS_PER_SAMPLE);
    const drawPosition = this.drawPosition();
    this.hitsUntilSample = drawPosition;
    this.hitsAfterSample = this.hitsPerSample - drawPosition;
  }
}
