import type { SettingSpec } from './spec.js';

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
  maxDescriptors: {
    name: 'MAX_DESCRIPTORS',
    type: 'count',
    default: '1000',
    max: 50_000,
    help: 'Maximum number of descriptors in a request. Requests with more descriptors get INVALID_ARGUMENT.',
  },
  maxLimits: {
    name: 'MAX_LIMITS',
    type: 'count',
    default: '4000',
    max: 50_000,
    help:
      'Maximum number of limits that a request may match. Requests with more ' +
      'limits get INVALID_ARGUMENT. Redis decides a request in one step, and 4,000 limits take about 25 ' +
      'ms.',
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
