import type { PolicyProvider } from '../config/policy-provider.js';
import { shellText } from '../config/show/shell-text.js';
import { didYouMean, type KeyPath, rulePaths, whyUnmatched } from '../config/show/why-unmatched.js';
import type { Entry } from '../limiter/entry.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import type { Closers } from '../runtime/closers.js';
import { firstNames, shown } from '../runtime/texts.js';
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

  /** Warns of a request whose domain has no policy. */
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

  /** Returns a sentence about the known domains. */
  #whyUnknownDomain(named: string): string {
    const known = [...(this.#policies()?.domains.keys() ?? [])];
    const near = didYouMean(named, known);
    const names = firstNames(known, NAMED_DOMAINS, shellText);
    const hint = known.length === 0 ? 'no domain is loaded' : near || `the loaded domains are ${names}`;
    return sentence(shown(hint, MAX_TEXT));
  }

  #warnDomain(named: string): void {
    const domain = shown(shellText(named), MAX_TEXT);
    this.#log.warn(
      { domain },
      `no policy has this domain, so its requests are not limited: ${this.#whyUnknownDomain(named)} ` +
        'If the domain should have no limits, create a policy file with on_unmatched: ignore',
    );
  }
}

/** Adds a full stop unless the text is a question. */
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
