/**
 * Shape of a random request ID (RFC 9562, version 4). Envoy replaces the version with 9, a or b if it traces the
 * request.
 */
const RANDOM_ID = /^[\da-f]{8}-[\da-f]{4}-[49ab][\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/i;

/** Denominators of envoy.type.v3.FractionalPercent. */
const DENOMINATORS = [100, 10_000, 1_000_000] as const;

/** Different IDs that are counted. More of them would not change the result. */
const COUNTED_IDS = 20_000;
/** Largest probability that the IDs of a whole log look like those of a sample. */
const MAX_CHANCE = 1e-9;

/** A sample that the IDs reveal. */
export interface SampledIds {
  readonly share: number;
  readonly denominator: number;
  /** Number of different IDs. */
  readonly ids: number;
}

/**
 * Recognises logs that Envoy sampled. Its runtime_filter logs a request if the first 32 bits of its request ID, modulo
 * the denominator of the percentage, are below the numerator. The IDs of a sample therefore leave a range of remainders
 * empty. A filter with `use_independent_randomness` cannot be recognised.
 */
export class IdSample {
  readonly #largest = DENOMINATORS.map(() => 0);
  readonly #different = new Set<number>();

  add(id: string): void {
    if (this.#different.size >= COUNTED_IDS || !RANDOM_ID.test(id)) return;
    const number = Number.parseInt(id.slice(0, 8), 16);
    this.#different.add(number);
    for (let i = 0; i < DENOMINATORS.length; i++) {
      const remainder = number % (DENOMINATORS[i] as number);
      if (remainder > (this.#largest[i] as number)) this.#largest[i] = remainder;
    }
  }

  /** Returns the sample with the smallest share; undefined if the log may be complete. */
  get sample(): SampledIds | undefined {
    const ids = this.#different.size;
    let found: SampledIds | undefined;
    for (const [i, denominator] of DENOMINATORS.entries()) {
      const share = ((this.#largest[i] as number) + 1) / denominator;
      if (ids * Math.log(share) > Math.log(MAX_CHANCE)) continue;
      if (found === undefined || share < found.share) found = { share, denominator, ids };
    }
    return found;
  }
}
