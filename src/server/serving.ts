/** What serving depends on; see docs/operate/endpoints.md, "Health". */
export interface ServingConditions {
  /** Set for good once a drain began. */
  readonly draining: boolean;
  /** Whether the store can decide now; always true in memory. */
  readonly storeUp: boolean;
  /** Whether the store was reached at least once. */
  readonly storeReached: boolean;
  /** Whether calls still wait until blocks and exemptions were read for the first time. */
  readonly awaitsControls: boolean;
  /** Whether some rule that may deny answers `error` while the store is away; see StoreNeed. */
  readonly needsStore: boolean;
  /** REDIS_HEALTH_CHECK_ACTIVE_CONNECTION. */
  readonly followsStore: boolean;
  /** HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED. */
  readonly needsDomain: boolean;
  /** Whether a policy with at least one domain is in force. */
  readonly hasDomain: boolean;
}

/** Why this process should not get requests, or undefined when it should. */
export function notServingReason(conditions: ServingConditions): string | undefined {
  if (conditions.draining) return 'draining';
  if (conditions.followsStore && !conditions.storeUp)
    return 'Redis is away (REDIS_HEALTH_CHECK_ACTIVE_CONNECTION is on)';
  if (conditions.needsStore && !conditions.storeReached) return 'Redis was not reached yet';
  if (conditions.needsStore && conditions.awaitsControls)
    return 'blocks and exemptions were not read from Redis yet';
  if (conditions.needsDomain && !conditions.hasDomain)
    return 'no policy with a domain is in force (HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED is on)';
  return undefined;
}

/** Keeps the conditions and tells a listener whenever the verdict changes. */
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
