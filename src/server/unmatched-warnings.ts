import type { PolicyProvider } from '../config/policy-provider.js';
import { shellText } from '../config/show/shell-text.js';
import { didYouMean, type KeyPath, rulePaths, whyUnmatched } from '../config/show/why-unmatched.js';
import type { Entry } from '../limiter/entry.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { firstNames } from '../quantity.js';
import type { Closers } from '../runtime/closers.js';
import { shown } from '../shown-text.js';
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

const COUNTS_INTERVAL_MS = 3_600_000;

/** Indexes into an {@link UnmatchedSeries}. */
const WARNED_GENERATION = 1;
const COUNT = 2;

/** A series that was logged, and that is counted since then. */
interface WarnedSeries {
  readonly series: UnmatchedSeries;
  /** Count of the series at its last log line. */
  count: number;
  /** Logs the number of further requests. */
  logMore(more: number): void;
}

class WarningKind {
  /** Series of the current policy version that were logged. */
  warned: WarnedSeries[] = [];
  linesThisHour = 0;
  /** Number of series that were not logged because of the bounds. */
  suppressed = 0;

  hasRoom(): boolean {
    return this.warned.length < MAX_LINES && this.linesThisHour < MAX_LINES_PER_HOUR;
  }
}

/**
 * Warns about requests that are allowed because no limit applies: their domain has no policy, or their descriptor
 * matches no rule. Each domain or sequence of keys is logged once per policy version, and {@link logCounts} logs the
 * number of further requests. The log contains keys, but never values. Log lines and memory are bounded, and a request
 * of a series that was already logged costs one array lookup.
 */
export class UnmatchedWarnings {
  readonly #log: Logger;
  readonly #policies: () => PolicySet | undefined;
  /** Marks the series that were logged since the last policy change. */
  #generation = 1;
  #descriptors = new WarningKind();
  #domains = new WarningKind();
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
    for (const kind of [this.#descriptors, this.#domains]) {
      kind.warned = [];
      kind.suppressed = 0;
    }
  }

  /** Counts a descriptor of `domain` that matched no rule. Not called if the policy has `on_unmatched: ignore`. */
  unmatched(domain: string, entries: readonly Entry[], series: UnmatchedSeries): void {
    series[COUNT] = (series[COUNT] as number) + 1;
    if (series[WARNED_GENERATION] === this.#generation) return;
    this.#warnFirst(this.#descriptors, series, () => this.#warnDescriptor(domain, entries));
  }

  /** Counts a request whose domain has no policy. */
  unknownDomain(domain: string, series: UnmatchedSeries): void {
    series[COUNT] = (series[COUNT] as number) + 1;
    if (series[WARNED_GENERATION] === this.#generation) return;
    this.#warnFirst(this.#domains, series, () => this.#warnDomain(domain));
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

  /**
   * Logs how many requests each series got since its last line, and makes room for other series. To be called every
   * hour.
   */
  logCounts(): void {
    for (const kind of [this.#descriptors, this.#domains]) {
      kind.linesThisHour = 0;
      kind.warned = kind.warned.filter((warned) => {
        const more = (warned.series[COUNT] as number) - warned.count;
        warned.count += more;
        if (more > 0) warned.logMore(more);
        return more > 0;
      });
    }
    const { suppressed: keys } = this.#descriptors;
    const { suppressed: domains } = this.#domains;
    this.#descriptors.suppressed = 0;
    this.#domains.suppressed = 0;
    if (keys > 0) {
      const text =
        'more key sequences matched no rule; for the number of descriptors by domain and keys, see ' +
        'weir_unmatched_total on /metrics';
      this.#log.warn({ sequences: keys }, text);
    }
    if (domains > 0) {
      const text =
        'more domains were unknown; for the number of requests by domain, see weir_unknown_domain_total on /metrics';
      this.#log.warn({ domains }, text);
    }
  }

  /** @param warn logs the first warning, and returns a function that logs further requests */
  #warnFirst(kind: WarningKind, series: UnmatchedSeries, warn: () => WarnedSeries['logMore']): void {
    series[WARNED_GENERATION] = this.#generation;
    if (!kind.hasRoom()) {
      kind.suppressed++;
      return;
    }
    kind.linesThisHour++;
    kind.warned.push({ series, count: series[COUNT] as number, logMore: warn() });
  }

  #warnDescriptor(domain: string, entries: readonly Entry[]): WarnedSeries['logMore'] {
    const log = this.#log;
    const all = entries.map(({ key }) => key);
    const first = shown(all.slice(0, MAX_SHOWN).map(shellText).join(' '), MAX_TEXT);
    const keys = first + (all.length > MAX_SHOWN ? ` … (${all.length - MAX_SHOWN} more)` : '');
    const { why, derived } = this.#whyUnmatched(domain, all);
    log.warn(
      { domain, keys },
      `no rule matches this descriptor${derived}, so weir allows the descriptor without a limit: ${why} ` +
        'Run weir explain to see how far the descriptor matches. If the descriptor should have no limit, ' +
        'set on_unmatched: ignore in the policy',
    );
    return (count) =>
      log.warn({ domain, keys, count }, 'more descriptors with these keys matched no rule and were allowed');
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

  /** Returns a sentence about the known domains. */
  #whyUnknownDomain(named: string): string {
    const known = [...(this.#policies()?.domains.keys() ?? [])];
    const near = didYouMean(named, known);
    const names = firstNames(known, NAMED_DOMAINS, shellText);
    const hint = known.length === 0 ? 'no domain is loaded' : near || `the loaded domains are ${names}`;
    return sentence(shown(hint, MAX_TEXT));
  }

  #warnDomain(named: string): WarnedSeries['logMore'] {
    const log = this.#log;
    const domain = shown(shellText(named), MAX_TEXT);
    log.warn(
      { domain },
      `no policy has this domain, so its requests are not limited: ${this.#whyUnknownDomain(named)} ` +
        'If the domain should have no limits, create a policy file with on_unmatched: ignore',
    );
    return (count) => log.warn({ domain, count }, 'more requests with this unknown domain were allowed');
  }
}

/** Adds a full stop unless the text is a question. */
function sentence(text: string): string {
  return text.endsWith('?') ? text : `${text}.`;
}

/** Opens warnings that follow the policies in effect, and log their counts every hour until they are closed. */
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
  const timer = setInterval(() => warnings.logCounts(), COUNTS_INTERVAL_MS).unref();
  closers.add(async () => clearInterval(timer));
  return warnings;
}
