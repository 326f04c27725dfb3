/** Names of the three headers of LIMIT_RESPONSE_HEADERS_ENABLED or LIMIT_REQUEST_HEADERS_ENABLED. */
export interface LimitHeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** What holds for every answer, whatever the policy says. */
export interface AnswerOptions {
  /** SHADOW_MODE: nobody is denied; statuses and metrics tell what would be. */
  readonly shadowMode: boolean;
  /**
   * QUOTA_MODE: every rule and override counts as a quota, and a descriptor that no limit concerns as one that passes.
   */
  readonly quotaMode: boolean;
  /** RESPONSE_DYNAMIC_METADATA. */
  readonly dynamicMetadata: boolean;
  /** DECISION_METADATA: for files that do not say `decision_metadata`. */
  readonly decisionMetadata: boolean;
  /** Headers for files that do not say `response_headers`; undefined: none. */
  readonly limitHeaders: LimitHeaderNames | undefined;
  /** Headers of the request upstream for files that do not say `request_headers`; undefined: none. */
  readonly limitRequestHeaders: LimitHeaderNames | undefined;
  /** ENVOY_ADDS_HEADERS: what Envoy's filter adds itself, so that clients would get it twice. */
  readonly envoyAdds: { readonly xRateLimit: boolean; readonly retryAfter: boolean };
}
