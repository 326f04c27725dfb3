/** Conditions that decide whether a process accepts requests; see docs/operate/endpoints.md, "Health". */
export interface ServingConditions {
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

/** Returns the reason why this process should not get requests, or undefined if it should. */
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

  update(change: Partial<ServingConditions>): void {
    this.#conditions = { ...this.#conditions, ...change };
    const serving = this.reason === undefined;
    if (serving === this.#serving) return;
    this.#serving = serving;
    this.#onChange(serving);
  }
}
