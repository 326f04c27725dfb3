import type { SettingSpec } from './spec.js';

/** What requests are answered. */
export const ANSWER_SETTINGS = {
  shadowMode: {
    name: 'SHADOW_MODE',
    type: 'boolean',
    default: 'false',
    help: 'Never answer OVER_LIMIT overall; statuses and metrics tell what would be.',
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
    help: 'Answer with dynamic metadata: domain, descriptors, hits and the `metadata` of rules that passed.',
    reference: { default: 'false' },
  },
  decisionMetadata: {
    name: 'DECISION_METADATA',
    type: 'boolean',
    default: 'false',
    help:
      'Answer with dynamic metadata that names the rule which decided, in files that do not say ' +
      '`decision_metadata`.',
  },
  limitHeaders: {
    name: 'LIMIT_RESPONSE_HEADERS_ENABLED',
    type: 'boolean',
    default: 'false',
    help: 'Add the three headers below, in files that do not say `response_headers`.',
    reference: { default: 'false' },
  },
  limitHeader: {
    name: 'LIMIT_LIMIT_HEADER',
    effectiveWhen: ['limitHeaders'],
    type: 'string',
    default: 'RateLimit-Limit',
    help: 'Header for the limit.',
    reference: { default: 'RateLimit-Limit' },
  },
  remainingHeader: {
    name: 'LIMIT_REMAINING_HEADER',
    effectiveWhen: ['limitHeaders'],
    type: 'string',
    default: 'RateLimit-Remaining',
    help: 'Header for what is left.',
    reference: { default: 'RateLimit-Remaining' },
  },
  resetHeader: {
    name: 'LIMIT_RESET_HEADER',
    effectiveWhen: ['limitHeaders'],
    type: 'string',
    default: 'RateLimit-Reset',
    help: 'Header for the seconds until the window ends, or one more token is there.',
    reference: { default: 'RateLimit-Reset' },
  },
  limitRequestHeaders: {
    name: 'LIMIT_REQUEST_HEADERS_ENABLED',
    type: 'boolean',
    default: 'false',
    help:
      'Add the three headers below to requests that Envoy sends upstream, in files that do not say ' +
      '`request_headers`.',
    reference: { default: 'false' },
  },
  requestLimitHeader: {
    name: 'LIMIT_REQUEST_LIMIT_HEADER',
    effectiveWhen: ['limitRequestHeaders'],
    type: 'string',
    default: 'RateLimit-Limit',
    help: 'Header of the request for the limit.',
    reference: { default: 'RateLimit-Limit' },
  },
  requestRemainingHeader: {
    name: 'LIMIT_REQUEST_REMAINING_HEADER',
    effectiveWhen: ['limitRequestHeaders'],
    type: 'string',
    default: 'RateLimit-Remaining',
    help: 'Header of the request for what is left.',
    reference: { default: 'RateLimit-Remaining' },
  },
  requestResetHeader: {
    name: 'LIMIT_REQUEST_RESET_HEADER',
    effectiveWhen: ['limitRequestHeaders'],
    type: 'string',
    default: 'RateLimit-Reset',
    help: 'Header of the request for the seconds until the window ends, or one more token is added.',
    reference: { default: 'RateLimit-Reset' },
  },
  envoyAddsHeaders: {
    name: 'ENVOY_ADDS_HEADERS',
    type: 'string_list',
    default: '',
    help:
      'What the Envoys in front add themselves, so that it is left to them: `x-ratelimit` ' +
      '(enable_x_ratelimit_headers), `retry-after` (enable_retry_after_header).',
  },
  nearLimitRatio: {
    name: 'NEAR_LIMIT_RATIO',
    type: 'number',
    default: '0.8',
    max: 1,
    help: 'Share of a limit, from 0 to 1, past which hits count as near_limit.',
    reference: {
      default: '0.8',
      differs: 'weir refuses a number above 1, which turns near_limit off in envoyproxy/ratelimit.',
    },
  },
  maxDescriptors: {
    name: 'MAX_DESCRIPTORS',
    type: 'count',
    default: '1000',
    max: 50_000,
    help: 'Most descriptors in one request; more get INVALID_ARGUMENT.',
  },
  maxLimits: {
    name: 'MAX_LIMITS',
    type: 'count',
    default: '4000',
    max: 50_000,
    help:
      'Most limits that the descriptors of one request meet together, candidates apart; more get ' +
      'INVALID_ARGUMENT. The store decides a request in one step: 4,000 limits take Redis about 25 ms.',
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
