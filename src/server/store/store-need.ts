import type { Clock } from '../../limiter/clock.js';
import { timerMs } from '../../limiter/clock.js';
import type { PolicySet } from '../../policy/policy-set.js';
import type { Rule } from '../../policy/rule.js';

/** The wall clock may step, so what a schedule says is looked at again at least this often. */
const LOOK_MS = 60_000;

/**
 * From when on a rule makes calls fail while the store is away, wall clock microseconds; Infinity for one that never
 * denies, or never fails.
 */
function failsFromMicros(rule: Rule): number {
  const { onStoreFailure, rate, candidate, shadowMode, enforcePercent, phase } = rule;
  const denies = rate !== undefined && !candidate && !shadowMode && enforcePercent > 0;
  return onStoreFailure === 'error' && denies ? phase.activeAtMicros : Infinity;
}

/**
 * From when on some rule answers `error` while the store is away, wall clock microseconds: -Infinity for always,
 * Infinity for never. `shadowMode` is SHADOW_MODE, in which no rule denies.
 */
export function storeNeededFrom(policies: PolicySet | undefined, shadowMode: boolean): number {
  let from = Infinity;
  if (shadowMode) return from;
  for (const { rules } of policies?.domains.values() ?? []) {
    for (const rule of rules) from = Math.min(from, failsFromMicros(rule));
  }
  return from;
}

/** Whether the policies in force need the store, now and when the schedules of their phases have gone on. */
export class StoreNeed {
  readonly #clock: Clock;
  readonly #shadowMode: boolean;
  readonly #onChange: (needed: boolean) => void;
  #fromMicros = Infinity;
  #timer: NodeJS.Timeout | undefined;

  /** `onChange` hears that the store is needed since a phase began. `shadowMode`: SHADOW_MODE. */
  constructor(clock: Clock, shadowMode: boolean, onChange: (needed: boolean) => void) {
    this.#clock = clock;
    this.#shadowMode = shadowMode;
    this.#onChange = onChange;
  }

  /** Other policies are in force. Returns whether they need the store now. */
  update(policies: PolicySet | undefined): boolean {
    this.#fromMicros = storeNeededFrom(policies, this.#shadowMode);
    return this.#evaluate();
  }

  /** Looks at no schedule any more. */
  close(): void {
    clearTimeout(this.#timer);
  }

  #evaluate(): boolean {
    clearTimeout(this.#timer);
    const leftMicros = this.#fromMicros - this.#clock.wallMicros();
    if (leftMicros <= 0) return true;
    if (leftMicros === Infinity) return false;
    const wait = Math.min(Math.ceil(timerMs(leftMicros)), LOOK_MS);
    this.#timer = setTimeout(() => {
      if (this.#evaluate()) this.#onChange(true);
    }, wait).unref();
    return false;
  }
}
