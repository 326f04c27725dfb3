import { STORE_FAILURE_POLICIES, type StoreFailurePolicy } from '../limiter/failure-policy.js';
import type { Rate } from '../limiter/rate.js';
import { WINDOW_UNITS } from '../limiter/window-unit.js';
import { type RateSpec, rateOf } from './rate-spec.js';
import type { HoldSpec, PhaseSchedule } from './rule.js';

const NO_NAMES: readonly string[] = [];

/**
 * Shares equal parts of one domain's rules to save memory. Rules that arrive from another thread each have their own
 * copies of rates, phases and keys, although thousands of rules may use only a few different ones. Fewer objects also
 * shorten garbage collections.
 */
export class SharedParts {
  private readonly texts = new Map<string, string>();
  private readonly phases = new Map<string, PhaseSchedule>();
  private readonly rates = new Map<string, Rate>();
  private readonly holds = new Map<string, HoldSpec>();
  private readonly shares = new Map<number, StoreFailurePolicy>();
  /** The last requested phase and its result: rules that arrive together often have the same object. */
  private lastPhase: PhaseSchedule | undefined;
  private lastShared: PhaseSchedule | undefined;

  text(text: string): string {
    const known = this.texts.get(text);
    if (known !== undefined) return known;
    this.texts.set(text, text);
    return text;
  }

  names(names: readonly string[]): readonly string[] {
    return names.length === 0 ? NO_NAMES : names;
  }

  phase(phase: PhaseSchedule): PhaseSchedule {
    if (phase !== this.lastPhase || this.lastShared === undefined) {
      this.lastPhase = phase;
      this.lastShared = this.sharedPhase(phase);
    }
    return this.lastShared;
  }

  private sharedPhase({ gracePeriodAtMicros, activeAtMicros }: PhaseSchedule): PhaseSchedule {
    const name = `${gracePeriodAtMicros} ${activeAtMicros}`;
    const known = this.phases.get(name);
    if (known !== undefined) return known;
    const phase = { gracePeriodAtMicros, activeAtMicros };
    this.phases.set(name, phase);
    return phase;
  }

  failurePolicy(policy: StoreFailurePolicy): StoreFailurePolicy {
    if (typeof policy !== 'string') {
      const known = this.shares.get(policy.local) ?? policy;
      this.shares.set(policy.local, known);
      return known;
    }
    return STORE_FAILURE_POLICIES.find((known) => known === policy) ?? policy;
  }

  hold(spec: HoldSpec | undefined): HoldSpec | undefined {
    if (spec === undefined) return undefined;
    const { expiresAfterMillis, amount, unknown, pair, retryAfterSeconds } = spec;
    const name = `${expiresAfterMillis} ${amount} ${unknown} ${pair} ${retryAfterSeconds}`;
    const known = this.holds.get(name);
    if (known !== undefined) return known;
    const hold = { expiresAfterMillis, amount, unknown, pair, retryAfterSeconds };
    this.holds.set(name, hold);
    return hold;
  }

  /** Returns the shared rate; see {@link rateOf}. */
  rate(spec: RateSpec, allOrNothing: boolean): Rate {
    const name = nameOf(spec, allOrNothing);
    const known = this.rates.get(name);
    if (known !== undefined) return known;
    const rate = rateOf(withKnownUnit(spec), allOrNothing);
    this.rates.set(name, rate);
    return rate;
  }
}

function nameOf(spec: RateSpec, allOrNothing: boolean): string {
  if (spec.kind === 'concurrency') return `${spec.max} slots`;
  const debt = `${spec.maxDebt} ${spec.minChargeHits}`;
  return spec.kind === 'window'
    ? `${spec.unit} ${spec.multiplier} ${spec.requestsPerUnit} ${debt} ${allOrNothing} ${spec.timeZone}`
    : `${spec.maxTokens} ${spec.tokensPerFill} ${spec.fillIntervalMicros} ${debt}`;
}

function withKnownUnit(spec: RateSpec): RateSpec {
  if (spec.kind !== 'window') return spec;
  return { ...spec, unit: WINDOW_UNITS.find((known) => known === spec.unit) ?? spec.unit };
}
