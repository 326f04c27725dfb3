import { quantity } from '../../../quantity.js';
import type { GapFinder } from './gap-finder.js';
import { IdSample } from './sampled-ids.js';

/** A reason why the log does not have all requests, so that the replay must not claim capacities. */
export interface Incompleteness {
  /** `stated` by the user or by the lines, `request_ids` of a sample, or a `gap` in the times. */
  readonly kind: 'stated' | 'request_ids' | 'gap';
  /** Share of the requests in the log, if it is known. */
  readonly share?: number;
  /** A sentence without its end: `the request IDs show that …`. */
  readonly reason: string;
}

/** Collects what shows that a log is a sample. */
export class SamplingEvidence {
  readonly #stated: number | undefined;
  readonly #ids = new IdSample();
  #leastSample = 1;

  /** `stated` is the share that the user named. */
  constructor(stated: number | undefined) {
    this.#stated = stated;
  }

  addRequestId(id: string): void {
    this.#ids.add(id);
  }

  /** Adds the share that a line of the decision log states. */
  addSample(text: string): void {
    const share = Number(text);
    if (share > 0 && share < this.#leastSample) this.#leastSample = share;
  }

  /** Returns what was found so far. */
  found(gaps: GapFinder): readonly Incompleteness[] {
    const found: Incompleteness[] = [];
    if (this.#stated !== undefined && this.#stated < 1)
      found.push({
        kind: 'stated',
        share: this.#stated,
        reason: `you stated a sample of ${percent(this.#stated)}`,
      });
    if (this.#leastSample < 1) {
      const reason = `the lines state a sample of ${percent(this.#leastSample)} ("sample")`;
      found.push({ kind: 'stated', share: this.#leastSample, reason });
    }
    const { sample } = this.#ids;
    if (sample !== undefined) {
      const { share, denominator, ids } = sample;
      const below = Math.round(share * denominator);
      const reason =
        `the request IDs show a sample of about ${percent(share)}: the first 32 bits of all ${ids} IDs are below ` +
        `${below} modulo ${denominator}, as with runtime_filter of Envoy's access_log`;
      found.push({ kind: 'request_ids', share, reason });
    }
    const { longest, count } = gaps;
    if (longest !== undefined) {
      const more = count === 1 ? '' : `; the log has ${quantity(count - 1, 'more gap')}`;
      const reason =
        `the log has no requests from ${timeOf(longest.fromSecond)} to ${timeOf(longest.toSecond)}, where the rate ` +
        `before predicts ${longest.missing}${more}`;
      found.push({ kind: 'gap', reason });
    }
    return found;
  }
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))}%`;
}

function timeOf(second: number): string {
  return new Date(second * 1000).toISOString().replace('.000', '');
}
