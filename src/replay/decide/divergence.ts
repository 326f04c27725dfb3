import { isDeepStrictEqual } from 'node:util';
import type { Rate } from '../../limiter/rate.js';
import type { MetLimit, RequestVerdict } from './verdict.js';

/** A request whose verdict is not final. */
interface Unsettled {
  readonly after: RequestVerdict;
}

/**
 * Finds the requests that two policies decide equally, although the log leaves their verdicts open: those that meet the
 * same limits, with buckets that only such requests have met. Buckets of other requests differ from then on.
 */
export class Divergence {
  /** Rates after the change, with an equal one before. */
  readonly #equalRates = new WeakMap<Rate, Rate>();

  /** Determines {@link RequestVerdict.sameAs}. `unsettled`: earlier requests that may have come later. */
  compare(before: RequestVerdict, after: RequestVerdict, unsettled: readonly Unsettled[]): void {
    if (this.#areSame(before, after)) after.sameAs = before;
    else this.#diverge(before, after, unsettled);
  }

  #areSame(before: RequestVerdict, after: RequestVerdict): boolean {
    if (before.denied !== after.denied) return false;
    const [limits, others] = [after.takes, before.takes];
    return (
      limits.length === others.length &&
      limits.every((limit, at) => this.#areSameLimits(others[at] as MetLimit, limit))
    );
  }

  #areSameLimits(before: MetLimit, after: MetLimit): boolean {
    if (!isCommon(before) || !isCommon(after) || before.denied !== after.denied) return false;
    const { key, hits, refund, ruleEnforcement } = after.take;
    return (
      before.take.key === key &&
      before.take.hits === hits &&
      before.take.refund === refund &&
      before.take.ruleEnforcement === ruleEnforcement &&
      this.#areEqual(before.take.rate, after.take.rate)
    );
  }

  #areEqual(before: Rate, after: Rate): boolean {
    if (this.#equalRates.get(after) === before) return true;
    if (!isDeepStrictEqual(before, after)) return false;
    this.#equalRates.set(after, before);
    return true;
  }

  #diverge(before: RequestVerdict, after: RequestVerdict, unsettled: readonly Unsettled[]): void {
    const isNew = [before.diverge(), after.diverge()].includes(true);
    if (!isNew) return;
    for (const { after: other } of unsettled) {
      const { sameAs } = other;
      if (sameAs === undefined || this.#areSame(sameAs, other)) continue;
      other.sameAs = undefined;
      this.#diverge(sameAs, other, unsettled);
    }
  }
}

/** Returns whether the bucket of a limit is the same with both policies. */
function isCommon({ bucket }: MetLimit): boolean {
  return bucket?.hasDiverged === false;
}
