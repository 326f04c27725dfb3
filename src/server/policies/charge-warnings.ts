import { shown } from '../../shown-text.js';
import { BoundedCounters, SeriesLimit } from '../../telemetry/bounded-counters.js';
import type { Logger } from '../../telemetry/logger.js';

/** Most rules that are looked at: further ones are not. */
const MAX_RULES = 1000;
/** So many requests of 1 hit, in so long, tell that no charge is on its way. */
const MIN_REQUESTS = 20;
const MIN_DURATION_MS = 60_000;

/** Places in the numbers of a rule. */
const REQUESTS = 0;
const SINCE_MS = 1;
const SETTLED = 2;

/**
 * Warns of rules with `allow_debt` whose requests all have 1 hit, which is never a charge: Envoy ignores the
 * `hits_addend` of rate limits that are in the wrong place. Once for each rule, whatever is reloaded.
 */
export class ChargeWarnings {
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #rules = new BoundedCounters(new SeriesLimit(MAX_RULES), 3);

  constructor(log: Logger, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** A request had so many `hits` for a rule with `allow_debt`. `refund`: it gives them back. */
  asked(domain: string, rule: string, hits: number, refund: boolean): void {
    if (hits === 0) return;
    const seen = this.#rules.series(domain, rule);
    if (seen[SETTLED] === 1 || this.#rules.isOverflow(seen)) return;
    if (hits > 1 || refund) {
      seen[SETTLED] = 1;
      return;
    }
    const requests = (seen[REQUESTS] as number) + 1;
    seen[REQUESTS] = requests;
    if (requests === 1) seen[SINCE_MS] = this.#nowMs();
    if (requests < MIN_REQUESTS || this.#nowMs() - (seen[SINCE_MS] as number) < MIN_DURATION_MS) return;
    seen[SETTLED] = 1;
    this.#log.warn(
      { domain, rule: shown(rule), requests },
      'every request for this rule with allow_debt had 1 hit, so nothing was charged: a charge has 2 hits or more. ' +
        'Envoy ignores hits_addend in the rate_limits of a route or a virtual host; move these rate limits to ' +
        'typed_per_filter_config. If no request has a usage to charge, remove allow_debt',
    );
  }
}
