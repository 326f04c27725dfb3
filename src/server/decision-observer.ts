import type { DecisionObserver } from '../service/decision-observer.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';

/** Counts decisions in `metrics` and, at level debug, writes each to the log. */
export function decisionObserver(metrics: Metrics, log: Logger): DecisionObserver {
  // The level is a setting: it never changes.
  const logsDecisions = log.isLevelEnabled('debug');
  return {
    unknownDomain: (domain) => metrics.unknownDomain(domain),
    unmatched: (domain, entries) => metrics.unmatched(domain, entries),
    decided: (domain, rule, overLimit, wouldBeThrottled) =>
      metrics.decided(domain, rule, overLimit, wouldBeThrottled),
    counted: () => {},
    globalShadow: () => {},
    failed: () => {},
    storeError: (reason) => metrics.storeError(reason),
    storeFailed: (policy) => metrics.storeFailed(policy),
    logsDecisions: () => logsDecisions,
    logDecision: (line) => log.debug(line, 'decision'),
  };
}
