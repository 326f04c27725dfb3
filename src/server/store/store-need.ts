import { type Clock, timerMs } from '../../limiter/clock.js';
import type { PolicySet } from '../../policy/compiled-policy.js';
import { canDeny, type Rule } from '../../policy/rule.js';

/** Maximum milliseconds between two checks of the schedules, because the wall clock may jump. */
const LOOK_MS = 60_000;

/**
 * Returns when a rule starts to fail calls while the store is unavailable, in microseconds of the wall clock. Infinity
 * if the rule never denies or never fails.
 */
function failsFromMicros(rule: Rule): number {
  return rule.onStoreFailure === 'error' && canDeny(rule) ? rule.phase.activeAtMicros : Infinity;
}

/**
 * Returns when the first rule starts to answer `error` while the store is unavailable, in microseconds of the wall
 * clock: -Infinity for always, Infinity for never. With `shadowMode` (SHADOW_MODE), no rule denies.
 */
export function storeNeededFrom(policies: PolicySet | undefined, shadowMode: boolean): number {
  let from = Infinity;
  if (shadowMode) return from;
  for (const { rules } of policies?.domains.values() ?? []) {
    for (const rule of rules) from = Math.min(from, failsFromMicros(rule));
  }
  return from;
}

/** Tracks whether the current policies need the store, including phases that schedules start later. */
export class StoreNeed {
  readonly #clock: Clock;
  readonly #shadowMode: boolean;
  readonly #onChange: (needed: boolean) => void;
  #fromMicros = Infinity;
  #timer: NodeJS.Timeout | undefined;

  /** @param onChange called when a phase starts that needs the store */
  constructor(clock: Clock, shadowMode: boolean, onChange: (needed: boolean) => void) {
    this.#clock = clock;
    this.#shadowMode = shadowMode;
    this.#onChange = onChange;
  }

  /** Replaces the policies. Returns whether they need the store now. */
  update(policies: PolicySet | undefined): boolean {
    this.#fromMicros = storeNeededFrom(policies, this.#shadowMode);
    return this.#evaluate();
  }

  /** Stops checking schedules. */
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
