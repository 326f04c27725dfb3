import type { DecisionCounts, DecisionObserver, DecisionWarnings } from '../../service/decision-observer.js';
import { MetChain, MetLimit, RequestVerdict } from './verdict.js';

const NO_SERIES: number[] = [];
const nothing = (): void => {};

/** Collects the limits that a request meets, and ignores what only metrics and logs of a server need. */
export class LimitCollector implements DecisionObserver {
  /** The verdict that gets the limits of the current request, in the order of its descriptors. */
  verdict = new RequestVerdict();
  /** Domain of the current request. */
  domain = '';
  /** Number of limits of the current descriptor that were counted, and for which `decided` was not called yet. */
  #undecided = 0;

  readonly counts: DecisionCounts = {
    decided: (_domain, _label, denied, wouldBeThrottled) => {
      const { limits } = this.verdict;
      const limit = limits[limits.length - this.#undecided];
      if (this.#undecided === 0 || limit === undefined) return;
      this.#undecided--;
      limit.denied = denied;
      limit.wouldBeThrottled = wouldBeThrottled;
    },
    reference: {
      counted: (_stat, _fromCaller, take, outcome) => {
        if (outcome === undefined) return;
        const Kind = take.chain.length > 1 ? MetChain : MetLimit;
        this.verdict.limits.push(new Kind(this.domain, take, outcome));
        this.#undecided++;
      },
      globalShadow: nothing,
      failed: nothing,
    },
    spilled: nothing,
    passedOver: () => {
      const { limits } = this.verdict;
      const limit = limits[limits.length - this.#undecided - 1];
      if (limit !== undefined) limit.wouldBeThrottled = true;
    },
    forgiven: nothing,
    controlled: nothing,
    candidate: (domain, label, liveDenied, denied) => {
      this.verdict.candidates ??= [];
      this.verdict.candidates.push({ domain, label, denied, liveDenied });
    },
    unmatched: () => NO_SERIES,
    unknownDomain: () => NO_SERIES,
    matchExceeded: nothing,
    requestGivenUp: nothing,
    storeError: nothing,
    storeFailed: nothing,
    holds: { placed: nothing, settled: nothing, released: nothing, unsettled: nothing, lost: nothing },
  };
  readonly warnings: DecisionWarnings = {
    unlimited: { unmatched: nothing, unknownDomain: nothing },
    charges: { asked: nothing },
    neverPasses: nothing,
    matchExceeded: nothing,
    givenUp: nothing,
    logsDecisions: () => false,
    logDecision: nothing,
  };
}
