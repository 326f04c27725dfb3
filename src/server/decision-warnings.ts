import type { PolicyProvider } from '../config/policy-provider.js';
import { didYouMean, type KeyPath, rulePaths, whyUnmatched } from '../config/show/why-unmatched.js';
import type { Entry } from '../limiter/entry.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import type { Closers } from '../runtime/closers.js';
import { shellText } from '../runtime/printable.js';
import { listSome, shown } from '../runtime/texts.js';
import { throttledLog } from '../runtime/timers.js';
import type { DecisionWarnings } from '../service/decision-observer.js';
import { MAX_TOKEN_CHARACTERS } from '../service/holds/hold-token.js';
import type { DecisionLine } from '../service/record/decision-line.js';
import type { GivenUpReason } from '../service/record/decision-record.js';
import { BoundedCounters, SeriesBudget } from '../telemetry/bounded-counters.js';
import type { Logger } from '../telemetry/logger.js';
import type { UnmatchedSeries } from '../telemetry/metrics.js';

/**
 * Maximum number of log lines about one kind of request: per policy version and hour, and per hour regardless of the
 * policy version.
 */
export const MAX_LINES = 20;
export const MAX_LINES_PER_HOUR = 100;
/** Maximum number of keys of a descriptor, and of domains, in a line. */
const MAX_SHOWN = 16;
const NAMED_DOMAINS = 5;
/** Maximum number of characters of the keys, the domain and the reason in a line, including quotes and escapes. */
const MAX_TEXT = 2000;

const HOUR_MS = 3_600_000;

/** Index into an {@link UnmatchedSeries}. */
const WARNED_GENERATION = 1;

/** Number of lines of one kind since the last policy change, and in this hour. */
class WarningKind {
  lines = 0;
  linesThisHour = 0;
  /** Whether the log says in this hour that further requests are not logged. */
  isFull = false;
  readonly more: string;

  constructor(more: string) {
    this.more = more;
  }
}

/**
 * Warns about requests that are allowed because no limit applies: their domain has no policy, or their descriptor
 * matches no rule. Each domain or sequence of keys is logged once per policy version and hour. The log contains keys,
 * but never values. Log lines and memory are bounded, and a request of a series that was already logged costs one array
 * lookup.
 */
export class UnmatchedWarnings {
  readonly #log: Logger;
  readonly #policies: () => PolicySet | undefined;
  /** Marks the series that were logged since the last policy change, and in this hour. */
  #generation = 1;
  readonly #descriptors = new WarningKind(
    'more key sequences matched no rule; for the number of descriptors by domain and keys, see weir_unmatched_total ' +
      'on /metrics',
  );
  readonly #domains = new WarningKind(
    'more domains were unknown; for the number of requests by domain, see weir_unknown_domain_total on /metrics',
  );
  /** Paths of rules, by domain, for domains with unmatched descriptors. */
  #paths = new Map<string, readonly KeyPath[]>();

  /** @param policies returns the policies in effect */
  constructor(log: Logger, policies: () => PolicySet | undefined) {
    this.#log = log;
    this.#policies = policies;
  }

  /** Resets the warnings after a policy change, so that unmatched requests are logged again. */
  policyChanged(): void {
    this.#generation++;
    this.#paths.clear();
    for (const kind of [this.#descriptors, this.#domains]) kind.lines = 0;
  }

  /** Lets requests that still occur be logged again. To be called every hour. */
  newHour(): void {
    this.policyChanged();
    for (const kind of [this.#descriptors, this.#domains]) {
      kind.linesThisHour = 0;
      kind.isFull = false;
    }
  }

  /** Warns of a descriptor of `domain` that matched no rule. Not called if the policy has `on_unmatched: ignore`. */
  unmatched(domain: string, entries: readonly Entry[], series: UnmatchedSeries): void {
    if (series[WARNED_GENERATION] === this.#generation) return;
    if (this.#isLogged(this.#descriptors, series)) this.#warnDescriptor(domain, entries);
  }

  unknownDomain(domain: string, series: UnmatchedSeries): void {
    if (series[WARNED_GENERATION] === this.#generation) return;
    if (this.#isLogged(this.#domains, series)) this.#warnDomain(domain);
  }

  /**
   * Returns the reason why no rule of the domain matches a descriptor with these keys, or, without keys, why the domain
   * is unknown. The text may be long.
   */
  why(domain: string, keys: KeyPath | undefined): string {
    return keys === undefined
      ? `no policy has this domain: ${this.#whyUnknownDomain(domain)}`
      : this.#whyUnmatched(domain, keys).why;
  }

  /** Marks a series. Returns whether the bounds leave room for its line. */
  #isLogged(kind: WarningKind, series: UnmatchedSeries): boolean {
    series[WARNED_GENERATION] = this.#generation;
    if (kind.lines < MAX_LINES && kind.linesThisHour < MAX_LINES_PER_HOUR) {
      kind.lines++;
      kind.linesThisHour++;
      return true;
    }
    if (!kind.isFull) this.#log.warn({}, kind.more);
    kind.isFull = true;
    return false;
  }

  #warnDescriptor(domain: string, entries: readonly Entry[]): void {
    const all = entries.map(({ key }) => key);
    const first = shown(all.slice(0, MAX_SHOWN).map(shellText).join(' '), MAX_TEXT);
    const keys = first + (all.length > MAX_SHOWN ? ` … (${all.length - MAX_SHOWN} more)` : '');
    const { why, derived } = this.#whyUnmatched(domain, all);
    this.#log.warn(
      { domain, keys },
      `no rule matches this descriptor${derived}, so weir allows the descriptor without a limit: ${why} ` +
        'Run weir explain to see how far the descriptor matches. If the descriptor should have no limit, ' +
        'set on_unmatched: ignore in the policy',
    );
  }

  #whyUnmatched(domain: string, keys: KeyPath): { readonly why: string; readonly derived: string } {
    const policy = this.#policies()?.domains.get(domain);
    // A policy decided that has been replaced in the meantime.
    if (policy === undefined) return { why: 'the policy has just changed.', derived: '' };
    const paths = this.#paths.get(domain) ?? rulePaths(policy.root);
    this.#paths.set(domain, paths);
    const derived = policy.steps.length === 0 ? '' : ' (with derived entries)';
    return { why: sentence(shown(whyUnmatched(keys, paths, policy), MAX_TEXT)), derived };
  }

  #whyUnknownDomain(named: string): string {
    const known = [...(this.#policies()?.domains.keys() ?? [])];
    const near = didYouMean(named, known);
    const names = listSome(known, NAMED_DOMAINS, shellText);
    const hint = known.length === 0 ? 'no domain is loaded' : near || `the loaded domains are ${names}`;
    return sentence(shown(hint, MAX_TEXT));
  }

  #warnDomain(named: string): void {
    const domain = shown(shellText(named), MAX_TEXT);
    this.#log.warn(
      { domain },
      `no policy has this domain, so its requests are not overLimit: ${this.#whyUnknownDomain(named)} ` +
        'If the domain should have no limits, create a policy file with on_unmatched: ignore',
    );
  }
}

function sentence(text: string): string {
  return text.endsWith('?') ? text : `${text}.`;
}

/** Opens warnings that follow the policies in effect, and repeat every hour until they are closed. */
export function openUnmatchedWarnings(
  log: Logger,
  policies: PolicyProvider,
  closers: Pick<Closers, 'add'>,
): UnmatchedWarnings {
  const warnings = new UnmatchedWarnings(log, () => policies.current());
  let version = policies.current()?.version;
  policies.onReload(() => {
    if (policies.current()?.version === version) return;
    version = policies.current()?.version;
    warnings.policyChanged();
  });
  const timer = setInterval(() => warnings.newHour(), HOUR_MS).unref();
  closers.add(async () => clearInterval(timer));
  return warnings;
}

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
  readonly logsDecisions: boolean;
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
    this.logsDecisions = log.isLevelEnabled('debug');
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
