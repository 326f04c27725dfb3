import type { DecisionObserver } from '../service/decision-observer.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';

/** Counts decisions in `metrics` and, at level debug, writes each to the log. */
export function decisionObserver(metrics: Metrics, log: Logger): DecisionObserver {
  const { reference } = metrics;
  // The level is a setting: it never changes.
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
    globalShadow: () => reference.globalShadow(),
    failed: (cause) => reference.failed(cause),
    storeError: (reason) => metrics.storeError(reason),
    storeFailed: (policy) => metrics.storeFailed(policy),
    logsDecisions: () => logsDecisions,
    logDecision: (line) => log.debug(line, 'decision'),
  };
}
