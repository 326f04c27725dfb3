import type { PolicyProvider } from '../config/policy-provider.js';
import { shellText } from '../config/show/shell-text.js';
import { didYouMean, type KeyPath, rulePaths, whyUnmatched } from '../config/show/why-unmatched.js';
import type { Entry } from '../limiter/entry.js';
import type { PolicySet } from '../policy/policy-set.js';
import type { Closers } from '../runtime/closers.js';
import { shown } from '../shown-text.js';
import type { Logger } from '../telemetry/logger.js';
import type { UnmatchedSeries } from '../telemetry/metrics.js';

/** Lines about requests of one kind: in an hour with one policy, and in an hour however often the policy changes. */
export const MAX_LINES = 20;
export const MAX_LINES_PER_HOUR = 100;
/** So many keys of a descriptor, and so many domains, are shown. */
const MAX_SHOWN = 16;
const NAMED_DOMAINS = 5;
/** Longest list of keys, domain and reason in a line, characters: what quotes and escapes make of them, too. */
const MAX_TEXT = 2000;

const COUNTS_INTERVAL_MS = 3_600_000;

/** Places in an {@link UnmatchedSeries}. */
const WARNED_GENERATION = 1;
const COUNT = 2;

/** What was warned about, and is counted since. */
interface WarnedSeries {
  readonly series: UnmatchedSeries;
  /** Of the series when it was told last. */
  count: number;
  /** Says how many more there were. */
  logMore(more: number): void;
}

/** Warnings of one kind. */
class WarningKind {
  /** Those of the policy in force that had a line of their own. */
  warned: WarnedSeries[] = [];
  linesThisHour = 0;
  /** Further ones, which had none. */
  suppressed = 0;

  hasRoom(): boolean {
    return this.warned.length < MAX_LINES && this.linesThisHour < MAX_LINES_PER_HOUR;
  }
}

/**
 * Warns of requests that pass because nothing limits them: for a domain that no policy has, or with a descriptor that
 * no rule matches. Once for each policy version and each domain or sequence of keys, then, by {@link logCounts}, with
 * the count. Keys are shown, values never. However many there are, lines and memory are bounded, and a request that was
 * told of costs a look at its series.
 */
export class UnmatchedWarnings {
  readonly #log: Logger;
  readonly #policies: () => PolicySet | undefined;
  /** Stands in every series that was told of since the policy changed. */
  #generation = 1;
  #descriptors = new WarningKind();
  #domains = new WarningKind();
  /** Where rules stand, for domains that were asked about. */
  #paths = new Map<string, readonly KeyPath[]>();

  /** `policies` gives those in force. */
  constructor(log: Logger, policies: () => PolicySet | undefined) {
    this.#log = log;
    this.#policies = policies;
  }

  /** Another policy is in force: what it does not match is told of anew. */
  policyChanged(): void {
    this.#generation++;
    this.#paths.clear();
    for (const kind of [this.#descriptors, this.#domains]) {
      kind.warned = [];
      kind.suppressed = 0;
    }
  }

  /** A descriptor of `domain` matched no rule, and the policy does not say that this is meant. */
  unmatched(domain: string, entries: readonly Entry[], series: UnmatchedSeries): void {
    series[COUNT] = (series[COUNT] as number) + 1;
    if (series[WARNED_GENERATION] === this.#generation) return;
    this.#warnFirst(this.#descriptors, series, () => this.#warnDescriptor(domain, entries));
  }

  /** A request named a domain that no policy has. */
  unknownDomain(domain: string, series: UnmatchedSeries): void {
    series[COUNT] = (series[COUNT] as number) + 1;
    if (series[WARNED_GENERATION] === this.#generation) return;
    this.#warnFirst(this.#domains, series, () => this.#warnDomain(domain));
  }

  /**
   * Why nothing matches: no rule of the domain a descriptor with these keys, or, without keys, no policy the domain.
   * May be long.
   */
  why(domain: string, keys: KeyPath | undefined): string {
    return keys === undefined
      ? `no policy has this domain: ${this.#whyUnknownDomain(domain)}`
      : this.#whyUnmatched(domain, keys).why;
  }

  /** Tells how many there were since it was told last, and makes room for others; to be called every hour. */
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
        'more sequences of keys matched no rule; weir_unmatched_total on /metrics counts them by domain and keys';
      this.#log.warn({ sequences: keys }, text);
    }
    if (domains > 0) {
      const text = 'more domains are known to no policy; weir_unknown_domain_total on /metrics counts them';
      this.#log.warn({ domains }, text);
    }
  }

  /** `warn` gives what says later how many more there were. */
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
      `no rule matches this descriptor${derived}, so it passes without a limit: ${why} weir explain shows how far ` +
        'it matches. If it is to have no limit, write on_unmatched: ignore in the policy',
    );
    return (count) =>
      log.warn({ domain, keys, count }, 'more of these descriptors matched no rule and passed');
  }

  #whyUnmatched(domain: string, keys: KeyPath): { readonly why: string; readonly derived: string } {
    const policy = this.#policies()?.domains.get(domain);
    // Decided by a policy that was replaced meanwhile.
    if (policy === undefined) return { why: 'the policy has just changed.', derived: '' };
    const paths = this.#paths.get(domain) ?? rulePaths(policy.root);
    this.#paths.set(domain, paths);
    const derived = policy.steps.length === 0 ? '' : ' (as derive made it)';
    return { why: sentence(shown(whyUnmatched(keys, paths, policy), MAX_TEXT)), derived };
  }

  /** A sentence about the domains that there are. */
  #whyUnknownDomain(named: string): string {
    const known = [...(this.#policies()?.domains.keys() ?? [])];
    const near = didYouMean(named, known);
    const names = known.slice(0, NAMED_DOMAINS).map(shellText).join(', ');
    const more = known.length > NAMED_DOMAINS ? ` and ${known.length - NAMED_DOMAINS} more` : '';
    const hint =
      known.length === 0 ? 'no domain is in force' : near || `the domains in force are ${names}${more}`;
    return sentence(shown(hint, MAX_TEXT));
  }

  #warnDomain(named: string): WarnedSeries['logMore'] {
    const log = this.#log;
    const domain = shown(shellText(named), MAX_TEXT);
    log.warn(
      { domain },
      `no policy has this domain, so its requests pass without a limit: ${this.#whyUnknownDomain(named)} If it is ` +
        'to have no limit, write a policy file with this domain and on_unmatched: ignore',
    );
    return (count) =>
      log.warn({ domain, count }, 'more requests for this domain, which no policy has, passed');
  }
}

/** The end of a sentence with its full stop, unless it is a question. */
function sentence(text: string): string {
  return text.endsWith('?') ? text : `${text}.`;
}

/** Warnings that follow the policy in force, and tell the counts every hour until they are closed. */
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
