import type { HealthVerdict } from '../admin/health-detail.js';
import type { PolicyProvider } from '../config/policy-provider.js';
import { type Clock, timerMs } from '../limiter/clock.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { canDeny, type Rule } from '../policy/rule.js';
import type { Closers } from '../runtime/closers.js';
import type { Settings } from './settings/settings-table.js';
import type { Store } from './store/store.js';

/** Conditions that decide whether a process accepts requests; see docs/operate/endpoints.md, "Health". */
interface ServingConditions {
  /** Stays true once a drain starts. */
  readonly draining: boolean;
  /** Whether the store can decide now; always true in memory. */
  readonly storeUp: boolean;
  /** Whether the store was available at least once. */
  readonly storeReached: boolean;
  /** Whether a rule that may deny answers `error` while the store is unavailable; see StoreNeed. */
  readonly needsStore: boolean;
  /** REDIS_HEALTH_CHECK_ACTIVE_CONNECTION. */
  readonly followsStore: boolean;
  /** HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED. */
  readonly needsDomain: boolean;
  /** Whether a policy with at least one domain is in effect. */
  readonly hasDomain: boolean;
}

function notServingReason(conditions: ServingConditions): string | undefined {
  if (conditions.draining) return 'draining';
  if (conditions.followsStore && !conditions.storeUp)
    return 'Redis is unavailable (REDIS_HEALTH_CHECK_ACTIVE_CONNECTION is on)';
  if (conditions.needsStore && !conditions.storeReached) return 'Redis has not been reached yet';
  if (conditions.needsDomain && !conditions.hasDomain)
    return 'no policy with a domain is in effect (HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED is on)';
  return undefined;
}

/** Keeps the conditions, and calls a listener whenever the state changes. */
export class Serving {
  #conditions: ServingConditions;
  #serving: boolean;
  readonly #onChange: (serving: boolean) => void;

  constructor(conditions: ServingConditions, onChange: (serving: boolean) => void) {
    this.#conditions = conditions;
    this.#serving = notServingReason(conditions) === undefined;
    this.#onChange = onChange;
    onChange(this.#serving);
  }

  get reason(): string | undefined {
    return notServingReason(this.#conditions);
  }

  get verdict(): HealthVerdict {
    const { reason } = this;
    return reason === undefined ? { status: 'SERVING' } : { status: 'NOT_SERVING', reason };
  }

  update(change: Partial<ServingConditions>): void {
    this.#conditions = { ...this.#conditions, ...change };
    const serving = this.reason === undefined;
    if (serving === this.#serving) return;
    this.#serving = serving;
    this.#onChange(serving);
  }
}

interface FollowedSettings {
  readonly settings: Settings;
  readonly policies: PolicyProvider;
  readonly clock: Clock;
}

function hasDomain(policies: PolicySet | undefined): boolean {
  return policies !== undefined && policies.domains.size > 0;
}

/**
 * Tracks whether this process should get requests, depending on its store and its policies. `onChange` is called with
 * the state at first and whenever it changes, and without an argument when the store becomes available or unavailable.
 */
export function followServing(
  { settings, policies, clock }: FollowedSettings,
  store: Store,
  closers: Closers,
  onChange: (isServing?: boolean) => void,
): Serving {
  const storeNeed = new StoreNeed(clock, settings.shadowMode, (needed) =>
    serving.update({ needsStore: needed }),
  );
  closers.add(async () => storeNeed.close());
  const conditions: ServingConditions = {
    draining: false,
    storeUp: store.up(),
    storeReached: store.up(),
    needsStore: storeNeed.update(policies.current()),
    followsStore: settings.redisHealthFollows,
    needsDomain: settings.healthyWithConfig,
    hasDomain: hasDomain(policies.current()),
  };
  const serving = new Serving(conditions, onChange);
  store.onChange((up) => {
    serving.update(up ? { storeUp: true, storeReached: true } : { storeUp: false });
    onChange();
  });
  policies.onReload(() => {
    store.reloaded();
    const current = policies.current();
    serving.update({ needsStore: storeNeed.update(current), hasDomain: hasDomain(current) });
  });
  return serving;
}

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
