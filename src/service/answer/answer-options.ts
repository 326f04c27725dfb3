/** Names of the three headers of LIMIT_RESPONSE_HEADERS_ENABLED or LIMIT_REQUEST_HEADERS_ENABLED. */
export interface LimitHeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** Names under which weir and Envoy pass the token of a request's holds. */
interface HoldNames {
  /** Key of the token in the dynamic metadata of an answer (HOLD_METADATA_KEY). */
  readonly metadataKey: string;
  /** Key of the entry that contains the token at the end of the request (HOLD_ENTRY). */
  readonly entry: string;
}

/** Options that apply to every answer, regardless of the policy. */
export interface AnswerOptions {
  /** SHADOW_MODE: no request is denied; statuses and metrics show which would be. */
  readonly shadowMode: boolean;
  /** QUOTA_MODE: every rule and override is a quota, and a descriptor without a limit counts as a quota that allows. */
  readonly quotaMode: boolean;
  /** RESPONSE_DYNAMIC_METADATA. */
  readonly dynamicMetadata: boolean;
  /** DECISION_METADATA: default for policy files without `decision_metadata`. */
  readonly decisionMetadata: boolean;
  /** Default headers for policy files without `response_headers`; undefined for none. */
  readonly limitHeaders: LimitHeaderNames | undefined;
  /** Default headers of the request upstream for policy files without `request_headers`; undefined for none. */
  readonly limitRequestHeaders: LimitHeaderNames | undefined;
  readonly holdNames: HoldNames;
  /** ENVOY_ADDS_HEADERS: the headers that Envoy's filter adds itself and that clients would otherwise receive twice. */
  readonly envoyAdds: { readonly xRateLimit: boolean; readonly retryAfter: boolean };
}
