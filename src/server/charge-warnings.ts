import { shown } from '../shown-text.js';
import { BoundedCounters, SeriesBudget } from '../telemetry/bounded-counters.js';
import type { Logger } from '../telemetry/logger.js';

/** Maximum number of rules that are observed. */
const MAX_RULES = 1000;
/** A rule gets a warning if this many requests, over at least this time, all had 1 hit. */
const MIN_REQUESTS = 20;
const MIN_DURATION_MS = 60_000;

/** Indexes into the numbers of a rule. */
const REQUESTS = 0;
const SINCE_MS = 1;
const SETTLED = 2;

/**
 * Warns about rules with `allow_debt` whose requests all have 1 hit, which is never a charge. A likely cause is a
 * `hits_addend` that Envoy ignores because its rate limit is in the wrong place. Each rule gets one warning, regardless
 * of reloads.
 */
export class ChargeWarnings {
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #rules = new BoundedCounters(new SeriesBudget(MAX_RULES), 3);

  constructor(log: Logger, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** Observes a request of `hits` for a rule with `allow_debt`. `refund`: the request gives the hits back. */
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
      'this rule has allow_debt, but every request had only 1 hit, so weir charged nothing: a charge ' +
        'needs at least 2 hits. Envoy ignores hits_addend in the rate_limits of a route or virtual host; ' +
        'move these rate limits to typed_per_filter_config. If requests have no usage to charge, remove ' +
        'allow_debt',
    );
  }
}
