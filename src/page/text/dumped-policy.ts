/* The part of the answer to `/rlconfig?format=json` that the page reads. */

/** A phase, and the start of phases that have one (RFC 3339). */
export interface DumpedPhase {
  readonly now: string;
  readonly grace_period?: string;
  readonly active?: string;
}

/** A limit, with the field names of the policy file. */
export interface DumpedLimit {
  readonly unlimited?: boolean;
  readonly unit?: string;
  readonly requests_per_unit?: number;
  readonly unit_multiplier?: number;
  /** The time zone of calendar windows. */
  readonly calendar?: string;
  readonly token_bucket?: {
    readonly max_tokens: number;
    readonly tokens_per_fill: number;
    readonly fill_interval: string;
  };
  readonly max_debt?: number;
  readonly concurrency?: {
    readonly max: number;
    readonly expires_after: string;
    readonly retry_after?: string;
  };
  readonly hold?: {
    /** Absent with `from`: a request holds the hits of its first call. */
    readonly amount?: number;
    readonly from?: string;
    readonly expires_after: string;
    readonly unknown: 'keep' | 'free';
    readonly pair: 'token' | 'oldest';
  };
}

/** The marks of requests over a soft limit. */
export interface DumpedOnOver {
  readonly request_headers?: readonly Readonly<Record<string, string>>[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** The table of customers, without its rows. */
export interface DumpedPlans {
  readonly by: string;
  /** null: the plans are the rows. */
  readonly from: string | null;
  readonly default: string | null;
  readonly define: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly rows: number;
  readonly refused: number;
}

export interface DumpedPolicyRule {
  readonly path: string;
  readonly name: string;
  readonly keys: readonly string[];
  /** If numbers come from a plan, the limit of customers without a row. */
  readonly limit: DumpedLimit;
  /** The fields of the limit that come from a plan, each with the name of the value. */
  readonly plan_values: Readonly<Record<string, string>> | null;
  /** Effect of the default plan besides numbers: `unlimited`, `blocked` or `phase monitoring`. */
  readonly without_row: string | null;
  readonly phase: DumpedPhase;
  readonly shadow_mode: boolean;
  readonly quota_mode: boolean;
  readonly enforce_percent: number;
  readonly replaces: readonly string[];
  readonly on_store_failure: string;
  /** null for a limit that is not soft. */
  readonly on_over: DumpedOnOver | null;
  /** Name of the limit that pays for requests over this limit, or null. */
  readonly then: string | null;
  /** Names of the limits that pay before this limit; absent for a limit that is the first one, or not in a chain. */
  readonly pays_after?: readonly string[];
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
    readonly on_store_failure: string;
    readonly on_unmatched: string;
    readonly derive: readonly { readonly step: string; readonly rules?: readonly string[] }[];
    readonly plans: DumpedPlans | null;
    readonly rules: readonly DumpedPolicyRule[];
  };
}

export interface DumpedPolicies {
  readonly version: string;
  readonly domains: readonly DumpedDomain[];
}
