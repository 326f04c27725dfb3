import type { PlannedRate, RateKeys, RateSpec } from '../../../policy/plans/plan-rate.js';
import type { Algorithm } from '../../../policy/policy.js';
import type { HoldSpec } from '../../../policy/rule.js';
import type { PlansReader } from '../plans/read-plans.js';

/** Defaults for the rates of a file. */
export interface RateDefaults {
  /** `algorithm` of the file, or of the environment. */
  readonly algorithm: Algorithm;
  /** `plans` of the file. */
  readonly plans: PlansReader | undefined;
  /** Whether an entry on the path of the limit selects a row of `plans`. */
  readonly hasCustomer: boolean;
}

/** A rate, and the settings of its holds, if it has any. */
export interface RateFields {
  readonly rate: RateSpec;
  readonly hold: HoldSpec | undefined;
  /** Present if numbers of the rate come from a plan. */
  readonly plan?: PlannedRate;
}

/** A rate without values from plans, with the keys that set it. */
export interface FixedRate extends RateFields {
  readonly keys: RateKeys;
}
