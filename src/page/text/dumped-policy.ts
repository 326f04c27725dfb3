/* The part of the answer to `/rlconfig?format=json` that the page reads. */

/** A phase, and the start of phases that have one (RFC 3339). */
export interface DumpedPhase {
  readonly now: string;
  readonly grace_period?: string;
  readonly active?: string;
}

/** The table of customers, without its rows. */
export interface DumpedPlans {
  readonly refused: number;
  /** The source of the rows, and each plan, in words. */
  readonly about: string;
  readonly define_about: readonly string[];
}

export interface DumpedPolicyRule {
  readonly path: string;
  readonly name: string;
  readonly keys: readonly string[];
  /** The limit in words: `window: 10 per hour`. */
  readonly limit_about: string;
  /** The other settings besides the phase, a few words for each. */
  readonly options_about: readonly string[];
  readonly phase: DumpedPhase;
  /** The fields of the limit that come from a plan, or null. */
  readonly plan_values: object | null;
  /** Name of the limit that pays for requests over this limit, or null. */
  readonly then: string | null;
  readonly matchers?: readonly {
    readonly key: string;
    readonly value_cidr?: readonly string[];
    readonly value_regex?: readonly string[];
  }[];
}

export interface DumpedDomain {
  readonly domain: string;
  readonly state: string;
  readonly files: readonly string[];
  /** Absent if no policy of the domain is in effect. */
  readonly policy?: {
    readonly phase: DumpedPhase;
    readonly derive: readonly { readonly step: string; readonly rules?: readonly string[] }[];
    readonly plans: DumpedPlans | null;
    readonly rules: readonly DumpedPolicyRule[];
  };
}

export interface DumpedPolicies {
  readonly version: string;
  readonly domains: readonly DumpedDomain[];
}
