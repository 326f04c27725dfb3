/** Names of the three headers of LIMIT_RESPONSE_HEADERS_ENABLED. */
export interface LimitHeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** What holds for every answer, whatever the policy says. */
export interface AnswerOptions {
  /** SHADOW_MODE: nobody is denied; statuses and metrics tell what would be. */
  readonly shadowMode: boolean;
  /** QUOTA_MODE: every rule and override counts as a quota, and a descriptor that no limit concerns as one that passes. */
  readonly quotaMode: boolean;
  /** RESPONSE_DYNAMIC_METADATA. */
  readonly dynamicMetadata: boolean;
  /** Headers for files that do not say `response_headers`; undefined: none. */
  readonly limitHeaders: LimitHeaderNames | undefined;
}

/** Nothing of it. */
export const PLAIN_ANSWERS: AnswerOptions = {
  shadowMode: false,
  quotaMode: false,
  dynamicMetadata: false,
  limitHeaders: undefined,
};
