import type { DecisionObserver } from '../service/decision-observer.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';

/** Between two lines about requests that were too much work, which callers can make as many as they like of. */
const QUIET_MS = 10_000;
/** Longest key that is logged, in UTF-16 units. */
const MAX_KEY = 200;

/** Does what it is given if it did nothing for a while. */
function onceInAWhile(nowMs: () => number): (action: () => void) => void {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return (action) => {
    if (nowMs() < quietUntilMs) return;
    quietUntilMs = nowMs() + QUIET_MS;
    action();
  };
}

function cut(key: string): string {
  return key.length > MAX_KEY ? `${key.slice(0, MAX_KEY)}…` : key;
}

/** Counts decisions in `metrics` and, at level debug, writes each to the log. */
export function decisionObserver(
  metrics: Metrics,
  log: Logger,
  nowMs: () => number = () => performance.now(),
): DecisionObserver {
  const { reference } = metrics;
  // The level is a setting: it never changes.
  const seldom = onceInAWhile(nowMs);
  const logsDecisions = log.isLevelEnabled('debug');
  return {
    unknownDomain: (domain, descriptors) => metrics.unknownDomain(domain, descriptors),
    unmatched: (domain, entries) => metrics.unmatched(domain, entries),
    decided: (domain, rule, overLimit, wouldBeThrottled) =>
      metrics.decided(domain, rule, overLimit, wouldBeThrottled),
    candidate: (domain, rule, live, candidate) => metrics.candidate(domain, rule, live, candidate),
    forgiven: (domain, rule, hits) => metrics.forgiven(domain, rule, hits),
    counted: (stat, fromCaller, take, outcome, shadowed) =>
      reference.counted(stat, fromCaller, take, outcome, shadowed),
    matchExceeded(domain, key, denied) {
      metrics.matchExceeded(domain);
      const text = 'a value takes more work to match than a request may cause';
      seldom(() => log.warn({ domain, key: cut(key), denied }, text));
    },
    givenUp(domain, why, denied) {
      metrics.requestGivenUp(domain, why);
      const text =
        'requests that take long wait for each other, and some had to be answered before they were looked at';
      seldom(() => log.warn({ domain, why, denied }, text));
    },
    globalShadow: () => reference.globalShadow(),
    failed: (cause) => reference.failed(cause),
    storeError: (reason) => metrics.storeError(reason),
    storeFailed: (policy) => metrics.storeFailed(policy),
    logsDecisions: () => logsDecisions,
    logDecision: (line) => log.debug(line, 'decision'),
  };
}
