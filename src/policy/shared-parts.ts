import { STORE_FAILURE_POLICIES, type StoreFailurePolicy } from '../limiter/entry.js';
import { type Rate, tokenBucketRate, WINDOW_UNITS, windowRate } from '../limiter/rate.js';
import type { PhaseSchedule, Rule } from './rule.js';

const NO_NAMES: readonly string[] = [];

/**
 * Equal parts of one domain's rules as one object: what comes from another thread has a copy of each for every rule, and thousands of rules
 * have few rates, phases and keys between them. Fewer objects also make shorter garbage collections.
 */
export class SharedParts {
  private readonly texts = new Map<string, string>();
  private readonly phases = new Map<string, PhaseSchedule>();
  private readonly rates = new Map<string, Rate>();

  text(text: string): string {
    const known = this.texts.get(text);
    if (known !== undefined) return known;
    this.texts.set(text, text);
    return text;
  }

  phase({ gracePeriodAtMicros, activeAtMicros }: PhaseSchedule): PhaseSchedule {
    const name = `${gracePeriodAtMicros} ${activeAtMicros}`;
    const known = this.phases.get(name);
    if (known !== undefined) return known;
    const phase = { gracePeriodAtMicros, activeAtMicros };
    this.phases.set(name, phase);
    return phase;
  }

  failurePolicy(policy: StoreFailurePolicy): StoreFailurePolicy {
    return STORE_FAILURE_POLICIES.find((known) => known === policy) ?? policy;
  }

  rule(rule: Rule): Rule {
    return {
      name: this.text(rule.name),
      path: rule.path,
      rate: rule.rate === undefined ? undefined : this.rate(rule.rate),
      phase: this.phase(rule.phase),
      shadowMode: rule.shadowMode,
      quotaMode: rule.quotaMode,
      replaces: rule.replaces.length === 0 ? NO_NAMES : rule.replaces,
      onStoreFailure: this.failurePolicy(rule.onStoreFailure),
      enforcePercent: rule.enforcePercent,
      candidate: rule.candidate,
      responseHeaders: rule.responseHeaders,
      deniedResponse: rule.deniedResponse,
      metadata: rule.metadata,
      statName: rule.statName,
      bucketSuffix: this.text(rule.bucketSuffix),
      statSuffix: this.text(rule.statSuffix),
    };
  }

  private rate(rate: Rate): Rate {
    const name =
      rate.kind === 'window'
        ? `${rate.unit} ${rate.multiplier} ${rate.requestsPerUnit} ${rate.maxDebt} ${rate.allOrNothing} ${rate.calendar?.timeZone}`
        : `${rate.maxTokens} ${rate.tokensPerFill} ${rate.fillIntervalMicros} ${rate.maxDebt}`;
    const known = this.rates.get(name);
    if (known !== undefined) return known;
    const made = rateOf(rate);
    this.rates.set(name, made);
    return made;
  }
}

function rateOf(rate: Rate): Rate {
  if (rate.kind === 'window') {
    const unit = WINDOW_UNITS.find((known) => known === rate.unit) ?? rate.unit;
    const { multiplier, requestsPerUnit, maxDebt, allOrNothing, calendar } = rate;
    return windowRate(unit, requestsPerUnit, {
      multiplier,
      maxDebt,
      allOrNothing,
      timeZone: calendar?.timeZone,
    });
  }
  return tokenBucketRate(rate.maxTokens, rate.tokensPerFill, rate.fillIntervalMicros, rate.maxDebt);
}
