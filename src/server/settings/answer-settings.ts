import type { SettingSpec } from './spec.js';

/** gRPC's default maximum for a message, in bytes. */
const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
/** The end of the help of each bound of a request. */
const ABOVE_A_BOUND =
  'weir does not decide a larger request, see docs/reference/bounds.md#requests-above-a-bound.';

/** Settings of answers. */
export const ANSWER_SETTINGS = {
  shadowMode: {
    name: 'SHADOW_MODE',
    type: 'boolean',
    default: 'false',
    help: 'Never deny: the overall code is always OK. Statuses and metrics still report what would be denied.',
    reference: { default: 'false' },
  },
  quotaMode: {
    name: 'QUOTA_MODE',
    type: 'boolean',
    default: 'false',
    help: 'Treat every rule as if it had `quota_mode`.',
    reference: { default: 'false' },
  },
  responseDynamicMetadata: {
    name: 'RESPONSE_DYNAMIC_METADATA',
    type: 'boolean',
    default: 'false',
    help:
      'Return dynamic metadata with the domain, descriptors, hits and the `metadata` of rules that allowed the ' +
      'request.',
    reference: { default: 'false' },
  },
  decisionMetadata: {
    name: 'DECISION_METADATA',
    type: 'boolean',
    default: 'false',
    help:
      'Return dynamic metadata with the rule that decided the request, unless the policy file sets ' +
      '`decision_metadata`.',
  },
  holdMetadataKey: {
    name: 'HOLD_METADATA_KEY',
    type: 'string',
    default: 'hold',
    help:
      "Key of a request's token in the dynamic metadata of its answer, in domains with `concurrency` or `hold`. " +
      'Envoy sends the token back when the request ends.',
  },
  limitHeaders: {
    name: 'LIMIT_RESPONSE_HEADERS_ENABLED',
    type: 'boolean',
    default: 'false',
    help:
      'Add three headers (LIMIT_LIMIT_HEADER, LIMIT_REMAINING_HEADER, LIMIT_RESET_HEADER) to responses, ' +
      'unless the policy file sets `response_headers`.',
    reference: { default: 'false' },
  },
  limitHeader: {
    name: 'LIMIT_LIMIT_HEADER',
    effectiveWhen: ['limitHeaders'],
    type: 'string',
    default: 'RateLimit-Limit',
    help: 'Name of the response header for the limit.',
    reference: { default: 'RateLimit-Limit' },
  },
  remainingHeader: {
    name: 'LIMIT_REMAINING_HEADER',
    effectiveWhen: ['limitHeaders'],
    type: 'string',
    default: 'RateLimit-Remaining',
    help: 'Name of the response header for the remaining tokens or hits.',
    reference: { default: 'RateLimit-Remaining' },
  },
  resetHeader: {
    name: 'LIMIT_RESET_HEADER',
    effectiveWhen: ['limitHeaders'],
    type: 'string',
    default: 'RateLimit-Reset',
    help: 'Name of the response header for the number of seconds until the window ends or the next token is added.',
    reference: { default: 'RateLimit-Reset' },
  },
  limitRequestHeaders: {
    name: 'LIMIT_REQUEST_HEADERS_ENABLED',
    type: 'boolean',
    default: 'false',
    help:
      'Add three headers (LIMIT_REQUEST_LIMIT_HEADER, LIMIT_REQUEST_REMAINING_HEADER, ' +
      'LIMIT_REQUEST_RESET_HEADER) to the requests that Envoy sends upstream, unless the policy file sets ' +
      '`request_headers`.',
    reference: { default: 'false' },
  },
  requestLimitHeader: {
    name: 'LIMIT_REQUEST_LIMIT_HEADER',
    effectiveWhen: ['limitRequestHeaders'],
    type: 'string',
    default: 'RateLimit-Limit',
    help: 'Name of the request header for the limit.',
    reference: { default: 'RateLimit-Limit' },
  },
  requestRemainingHeader: {
    name: 'LIMIT_REQUEST_REMAINING_HEADER',
    effectiveWhen: ['limitRequestHeaders'],
    type: 'string',
    default: 'RateLimit-Remaining',
    help: 'Name of the request header for the remaining tokens or hits.',
    reference: { default: 'RateLimit-Remaining' },
  },
  requestResetHeader: {
    name: 'LIMIT_REQUEST_RESET_HEADER',
    effectiveWhen: ['limitRequestHeaders'],
    type: 'string',
    default: 'RateLimit-Reset',
    help: 'Name of the request header for the number of seconds until the window ends or the next token is added.',
    reference: { default: 'RateLimit-Reset' },
  },
  envoyAddsHeaders: {
    name: 'ENVOY_ADDS_HEADERS',
    type: 'string_list',
    default: '',
    help:
      'Headers that Envoy already adds and weir must not add again: `x-ratelimit` ' +
      '(enable_x_ratelimit_headers), `retry-after` (enable_retry_after_header).',
  },
  nearLimitRatio: {
    name: 'NEAR_LIMIT_RATIO',
    type: 'number',
    default: '0.8',
    max: 1,
    help: 'Fraction of a limit, from 0 to 1, above which hits count as near_limit.',
    reference: {
      default: '0.8',
      differs: 'weir rejects values above 1, which turn near_limit off in envoyproxy/ratelimit.',
    },
  },
  maxRequestBytes: {
    name: 'MAX_REQUEST_BYTES',
    type: 'count',
    default: '65536',
    max: MAX_REQUEST_BYTES,
    help: `Maximum size of a request, after decompression. ${ABOVE_A_BOUND}`,
  },
  maxDescriptors: {
    name: 'MAX_DESCRIPTORS',
    type: 'count',
    default: '128',
    max: 10_000,
    help: `Maximum number of descriptors in a request. ${ABOVE_A_BOUND}`,
  },
  maxEntries: {
    name: 'MAX_ENTRIES',
    type: 'count',
    default: '1000',
    max: 100_000,
    help: `Maximum number of entries in all descriptors of a request together. ${ABOVE_A_BOUND}`,
  },
  maxLimits: {
    name: 'MAX_LIMITS',
    type: 'count',
    default: '256',
    max: 10_000,
    help: `Maximum number of limits that a request may meet. ${ABOVE_A_BOUND}`,
  },
  maxRegexValueBytes: {
    name: 'MAX_REGEX_VALUE_BYTES',
    type: 'count',
    default: '4096',
    max: MAX_REQUEST_BYTES,
    help: `Maximum size of a value that is compared with regular expressions. ${ABOVE_A_BOUND}`,
  },
  maxMatchWork: {
    name: 'MAX_MATCH_WORK',
    type: 'count',
    default: '262144',
    max: 1_000_000_000,
    help:
      'Maximum work to match a request with value patterns and regular expressions, in the units of ' +
      'docs/policy/matching.md#the-cost-of-matching. The default takes at most about 1 ms of CPU time. ' +
      ABOVE_A_BOUND,
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
