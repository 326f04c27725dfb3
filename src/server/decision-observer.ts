import { seldom } from '../runtime/seldom.js';
import type { BucketCounter } from '../service/bucket-counter.js';
import type { DecisionLine, DecisionObserver } from '../service/decision-observer.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { ChargeWarnings } from './policies/charge-warnings.js';
import { shown } from './shown-text.js';
import type { UnmatchedWarnings } from './unmatched-warnings.js';

/** Most limits that the log names, until the server ends, for requests that can never pass. */
const MAX_NAMED = 1000;
/** Most characters that say why nothing matched. */
const MAX_WHY = 500;

/** What a line of the decision log holds beside what it was told. */
type ShownLine = Omit<DecisionLine, 'unmatched'> & { readonly why?: string };

const TOO_MUCH_WORK = 'matching took more work than a request may cause';

/** A line of the decision log with its long texts cut: bounded, whatever was asked. */
function shownLine(
  { unmatched, ...line }: DecisionLine,
  warnings: Pick<UnmatchedWarnings, 'why'>,
): ShownLine {
  const { domain, rule, request, control } = line;
  const entries = line.entries.map(({ key, value }) => ({ key: shown(key), value: shown(value) }));
  const all = { ...line, request: shown(request), domain: shown(domain), rule: shown(rule), entries };
  if (control?.reason !== undefined) all.control = { ...control, reason: shown(control.reason) };
  if (unmatched === undefined) return all;
  if (unmatched === 'work') return { ...all, why: TOO_MUCH_WORK };
  // Of more entries than are shown no rule is near.
  const keys = unmatched === 'domain' ? undefined : line.entries.map(({ key }) => key);
  return { ...all, why: shown(warnings.why(domain, keys), MAX_WHY) };
}

/**
 * Counts decisions in `metrics`, those of single buckets in `buckets`, has `warnings` tell of what nothing limits and,
 * at level debug, logs each one.
 */
export function decisionObserver(
  metrics: Metrics,
  log: Logger,
  warnings: Pick<UnmatchedWarnings, 'unmatched' | 'unknownDomain' | 'why'>,
  buckets?: BucketCounter,
  nowMs: () => number = () => performance.now(),
): DecisionObserver {
  const { reference } = metrics;
  // The level is a setting: it never changes.
  const mayTellOfWork = seldom(nowMs);
  const mayTellOfRules = seldom(nowMs);
  /** Rules that the log has named for requests that can never pass. */
  const named = new WeakSet();
  /** The same rules by name and limit: a reload makes each rule anew. */
  const namedLimits = new Set<string>();
  const charges = new ChargeWarnings(log, nowMs);
  const logsDecisions = log.isLevelEnabled('debug');
  return {
    buckets,
    unknownDomain: (domain, descriptors) =>
      warnings.unknownDomain(domain, metrics.unknownDomain(domain, descriptors)),
    unmatched(domain, entries, meant) {
      const series = metrics.unmatched(domain, entries);
      if (!meant) warnings.unmatched(domain, entries, series);
    },
    decided: (domain, rule, overLimit, wouldBeThrottled) =>
      metrics.decided(domain, rule, overLimit, wouldBeThrottled),
    controlled: (domain, kind) => metrics.controlled(domain, kind),
    candidate: (domain, rule, live, candidate) => metrics.candidate(domain, rule, live, candidate),
    debtAsked: (domain, rule, hits, refund) => charges.asked(domain, rule, hits, refund),
    forgiven: (domain, rule, hits) => metrics.forgiven(domain, rule, hits),
    counted: (stat, fromCaller, take, outcome, shadowed) =>
      reference.counted(stat, fromCaller, take, outcome, shadowed),
    matchExceeded(domain, key, denied) {
      metrics.matchExceeded(domain);
      const text = 'a value takes more work to match than a request may cause';
      if (mayTellOfWork()) log.warn({ domain, key: shown(key), denied }, text);
    },
    neverPasses(domain, rule, hits, limit, about) {
      // A limit of 0 is there to deny everything.
      if (limit === 0 || named.has(about)) return;
      const name = `${domain} ${rule} ${limit}`;
      if (namedLimits.has(name) || namedLimits.size >= MAX_NAMED) {
        named.add(about);
        return;
      }
      if (!mayTellOfRules()) return;
      named.add(about);
      namedLimits.add(name);
      const text =
        'a request asks for more hits at once than this limit ever allows (descriptors that fall on one bucket ' +
        'count together): where the limit is enforced it is denied however long its caller waits; send fewer ' +
        'hits in one request, or raise the limit';
      log.warn({ domain, rule: shown(rule), hits, limit }, text);
    },
    givenUp(domain, why, denied) {
      metrics.requestGivenUp(domain, why);
      const text =
        'requests that take long wait for each other, and some had to be answered before they were looked at';
      if (mayTellOfWork()) log.warn({ domain, why, denied }, text);
    },
    globalShadow: () => reference.globalShadow(),
    failed: (cause) => reference.failed(cause),
    storeError: (reason) => metrics.storeError(reason),
    storeFailed: (policy) => metrics.storeFailed(policy),
    logsDecisions: () => logsDecisions,
    logDecision: (line) => log.debug(shownLine(line, warnings), 'decision'),
  };
}
