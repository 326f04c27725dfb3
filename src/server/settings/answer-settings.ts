import { own, shared, when } from './settings-values.js';

/** The end of the help of each bound of a request. */
const ABOVE_A_BOUND =
  'weir does not decide a larger request, see docs/reference/bounds.md#requests-above-a-bound.';

export const ANSWER_SETTINGS = {
  shadowMode: shared('SHADOW_MODE', 'boolean', 'false', {
    help: 'Never deny: the overall code is always OK. Statuses and metrics still report what would be denied.',
  }),
  quotaMode: shared('QUOTA_MODE', 'boolean', 'false', {
    help: 'Treat every rule as if it had `quota_mode`.',
  }),
  responseDynamicMetadata: shared('RESPONSE_DYNAMIC_METADATA', 'boolean', 'false', {
    help:
      'Return dynamic metadata with the domain, descriptors, hits and the `metadata` of rules that ' +
      'allowed the request.',
  }),
  decisionMetadata: own('DECISION_METADATA', 'boolean', 'false', {
    help:
      'Return dynamic metadata with the rule that decided the request, unless the policy file sets ' +
      '`decision_metadata`.',
  }),
  holdMetadataKey: own('HOLD_METADATA_KEY', 'string', 'hold', {
    help:
      "Key of a request's token in the dynamic metadata of its answer, in domains with `concurrency` or " +
      '`hold`. Envoy sends the token back when the request ends.',
  }),
  limitHeaders: shared('LIMIT_RESPONSE_HEADERS_ENABLED', 'boolean', 'false', {
    help:
      'Add three headers (LIMIT_LIMIT_HEADER, LIMIT_REMAINING_HEADER, LIMIT_RESET_HEADER) to responses, ' +
      'unless the policy file sets `response_headers`.',
  }),
  ...when('LIMIT_RESPONSE_HEADERS_ENABLED=true', {
    limitHeader: shared('LIMIT_LIMIT_HEADER', 'string', 'RateLimit-Limit', {
      help: 'Name of the response header for the limit.',
    }),
    remainingHeader: shared('LIMIT_REMAINING_HEADER', 'string', 'RateLimit-Remaining', {
      help: 'Name of the response header for the remaining tokens or hits.',
    }),
    resetHeader: shared('LIMIT_RESET_HEADER', 'string', 'RateLimit-Reset', {
      help:
        'Name of the response header for the number of seconds until the window ends or the next token ' +
        'is added.',
    }),
  }),
  limitRequestHeaders: shared('LIMIT_REQUEST_HEADERS_ENABLED', 'boolean', 'false', {
    help:
      'Add three headers (LIMIT_REQUEST_LIMIT_HEADER, LIMIT_REQUEST_REMAINING_HEADER, ' +
      'LIMIT_REQUEST_RESET_HEADER) to the requests that Envoy sends upstream, unless the policy file ' +
      'sets `request_headers`.',
  }),
  ...when('LIMIT_REQUEST_HEADERS_ENABLED=true', {
    requestLimitHeader: shared('LIMIT_REQUEST_LIMIT_HEADER', 'string', 'RateLimit-Limit', {
      help: 'Name of the request header for the limit.',
    }),
    requestRemainingHeader: shared('LIMIT_REQUEST_REMAINING_HEADER', 'string', 'RateLimit-Remaining', {
      help: 'Name of the request header for the remaining tokens or hits.',
    }),
    requestResetHeader: shared('LIMIT_REQUEST_RESET_HEADER', 'string', 'RateLimit-Reset', {
      help:
        'Name of the request header for the number of seconds until the window ends or the next token ' +
        'is added.',
    }),
  }),
  envoyAddsHeaders: own('ENVOY_ADDS_HEADERS', 'string_list', '', {
    help:
      'Headers that Envoy already adds and weir must not add again: `x-ratelimit` ' +
      '(enable_x_ratelimit_headers), `retry-after` (enable_retry_after_header).',
  }),
  nearLimitRatio: shared('NEAR_LIMIT_RATIO', 'number', '0.8', {
    max: 1,
    help: 'Fraction of a limit, from 0 to 1, above which hits count as near_limit.',
    differs: 'weir rejects values above 1, which turn near_limit off in envoyproxy/ratelimit.',
  }),
  maxRequestBytes: own('MAX_REQUEST_BYTES', 'count', '65536', {
    max: 4_194_304,
    help: `Maximum size of a request, after decompression. ${ABOVE_A_BOUND}`,
  }),
  maxDescriptors: own('MAX_DESCRIPTORS', 'count', '128', {
    max: 10_000,
    help: `Maximum number of descriptors in a request. ${ABOVE_A_BOUND}`,
  }),
  maxEntries: own('MAX_ENTRIES', 'count', '1000', {
    max: 100_000,
    help: `Maximum number of entries in all descriptors of a request together. ${ABOVE_A_BOUND}`,
  }),
  maxLimits: own('MAX_LIMITS', 'count', '256', {
    max: 10_000,
    help: `Maximum number of limits that a request may meet. ${ABOVE_A_BOUND}`,
  }),
  maxRegexValueBytes: own('MAX_REGEX_VALUE_BYTES', 'count', '4096', {
    max: 4_194_304,
    help: `Maximum size of a value that is compared with regular expressions. ${ABOVE_A_BOUND}`,
  }),
  maxMatchWork: own('MAX_MATCH_WORK', 'count', '262144', {
    max: 1_000_000_000,
    help:
      'Maximum work to match a request with value patterns and regular expressions, in the units of ' +
      'docs/policy/matching.md#the-cost-of-matching. The default takes at most about 1 ms of CPU time. ' +
      `${ABOVE_A_BOUND}`,
  }),
} as const;
