import { shown } from '../runtime/texts.js';
import { throttledLog } from '../runtime/throttled-log.js';
import type { DecisionWarnings } from '../service/decision-observer.js';
import { MAX_TOKEN_CHARACTERS } from '../service/holds/hold-token.js';
import type { DecisionLine } from '../service/record/decision-line.js';
import type { GivenUpReason } from '../service/record/decision-record.js';
import { BoundedCounters, SeriesBudget } from '../telemetry/bounded-counters.js';
import type { Logger } from '../telemetry/logger.js';
import type { UnmatchedWarnings } from './unmatched-warnings.js';

/** Maximum number of limits for which the log warns about requests that never pass, for the life of the process. */
const MAX_NAMED_LIMITS = 1000;
/** Maximum number of characters that explain why no rule matched. */
const MAX_REASON_CHARACTERS = 500;

/** A line of the log, with the reason for an unmatched descriptor as text. */
type ShownLine = Omit<DecisionLine, 'unmatched'> & { readonly why?: string };

/** Why requests get answers without a decision, and what to do. */
const GIVEN_UP_SENTENCES: Readonly<Record<GivenUpReason, string>> = {
  request_bytes: 'their messages are longer than MAX_REQUEST_BYTES',
  descriptors: 'they have more descriptors than MAX_DESCRIPTORS',
  entries: 'they have more entries than MAX_ENTRIES',
  limits: 'they meet more limits than MAX_LIMITS',
  regex_value: 'a value for a regular expression is longer than MAX_REGEX_VALUE_BYTES',
  match_work: 'matching them needs more work than MAX_MATCH_WORK',
  hold_token:
    `their holds do not fit into a hold token of ${MAX_TOKEN_CHARACTERS} characters. Send fewer descriptors with ` +
    'concurrency or hold in a request',
  late: 'they are large, and waited too long for their turn',
  full:
    'too many large requests, or too many requests for Redis, were waiting, or the deadline had passed before ' +
    'weir could ask Redis',
};

/** Returns a line of the log with its long texts shortened, so that its size is bounded. */
function shownLine(
  { unmatched, ...line }: DecisionLine,
  warnings: Pick<UnmatchedWarnings, 'why'>,
): ShownLine {
  const { domain, rule, request } = line;
  const entries = line.entries.map(({ key, value }) => ({ key: shown(key), value: shown(value) }));
  const all = { ...line, request: shown(request), domain: shown(domain), rule: shown(rule), entries };
  if (unmatched === undefined) return all;
  // A descriptor with more entries than the line contains is not close to any rule.
  const keys = unmatched === 'domain' ? undefined : line.entries.map(({ key }) => key);
  return { ...all, why: shown(warnings.why(domain, keys), MAX_REASON_CHARACTERS) };
}

/** Logs warnings for operators, and each decision at level debug. */
export class LoggedWarnings implements DecisionWarnings {
  readonly unlimited: UnmatchedWarnings;
  readonly charges: ChargeWarnings;
  readonly #log: Logger;
  /** LOG_LEVEL does not change while weir runs. */
  readonly #logsDecisions: boolean;
  readonly #shouldLogWork: () => boolean;
  readonly #shouldLogRules: () => boolean;
  /** Rules that already have a warning about requests that never pass. */
  readonly #warnedRules = new WeakSet();
  /** The same rules by name and limit, because a reload creates new rule objects. */
  readonly #warnedLimits = new Set<string>();

  constructor(log: Logger, unlimited: UnmatchedWarnings, nowMs: () => number = () => performance.now()) {
    this.unlimited = unlimited;
    this.charges = new ChargeWarnings(log, nowMs);
    this.#log = log;
    this.#logsDecisions = log.isLevelEnabled('debug');
    this.#shouldLogWork = throttledLog(nowMs);
    this.#shouldLogRules = throttledLog(nowMs);
  }

  neverPasses(domain: string, rule: string, hits: number, limit: number, about: object): void {
    // A limit of 0 intentionally denies every request.
    if (limit === 0 || this.#warnedRules.has(about)) return;
    const name = `${domain} ${rule} ${limit}`;
    if (this.#warnedLimits.has(name) || this.#warnedLimits.size >= MAX_NAMED_LIMITS) {
      this.#warnedRules.add(about);
      return;
    }
    if (!this.#shouldLogRules()) return;
    this.#warnedRules.add(about);
    this.#warnedLimits.add(name);
    const text =
      'a request has more hits than this limit can ever allow, so the request is always denied if the ' +
      'limit is enforced. The hits of all descriptors that use the same bucket are added up. Send fewer ' +
      'hits in one request, or raise the limit';
    this.#log.warn({ domain, rule: shown(rule), hits, limit }, text);
  }

  givenUp(domain: string, why: GivenUpReason, denied: boolean): void {
    const text =
      `weir answered some requests without a decision: ${GIVEN_UP_SENTENCES[why]}; see ` +
      'docs/runbooks.md#weirrequestsgivenup';
    if (this.#shouldLogWork()) this.#log.warn({ domain, why, denied }, text);
  }

  logsDecisions(): boolean {
    return this.#logsDecisions;
  }

  logDecision(line: DecisionLine): void {
    this.#log.debug(shownLine(line, this.unlimited), 'decision');
  }
}

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
