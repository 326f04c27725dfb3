import { NONE, ok, type ReferenceCase } from '../case.js';

const RULES = `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
`;
const INVALID_ARGUMENT = 3;
const UNKNOWN = 2;
const OWN_CODE = 'a bad request is INVALID_ARGUMENT; the reference has the code UNKNOWN for everything';
const SERVICE_ERROR = 'ratelimit.service.call.should_rate_limit.service_error';

/** Requests that are answered with an error. */
export const BAD_REQUESTS: readonly ReferenceCase[] = [
  {
    name: 'a request without domain',
    differs: OWN_CODE,
    rules: RULES,
    steps: [
      {
        ask: 'user=ann',
        domain: '',
        get: { error: { code: INVALID_ARGUMENT, text: 'rate limit domain must not be empty' } },
        reference: { error: { code: UNKNOWN, text: 'rate limit domain must not be empty' } },
      },
    ],
    counters: { [SERVICE_ERROR]: 1 },
  },
  {
    name: 'a request without descriptors',
    differs: OWN_CODE,
    rules: RULES,
    steps: [
      {
        ask: [],
        get: { error: { code: INVALID_ARGUMENT, text: 'rate limit descriptor list must not be empty' } },
        reference: { error: { code: UNKNOWN, text: 'rate limit descriptor list must not be empty' } },
      },
    ],
    counters: { [SERVICE_ERROR]: 1 },
  },
  {
    name: 'a request without both says that the domain is missing',
    differs: OWN_CODE,
    steps: [
      {
        ask: [],
        domain: '',
        get: { error: { code: INVALID_ARGUMENT, text: 'rate limit domain must not be empty' } },
        reference: { error: { code: UNKNOWN, text: 'rate limit domain must not be empty' } },
      },
    ],
  },
  {
    name: 'an override without unit',
    differs: 'it ends the process of the reference',
    notReference: true,
    rules: RULES,
    steps: [
      {
        ask: [{ entries: 'user=ann' }, { entries: 'user=bob', limit: '5/unknown' }],
        get: { error: { code: INVALID_ARGUMENT, text: /unit/ } },
      },
      { ask: 'user=ann', get: [ok('2/hour', 1)] },
    ],
  },
  {
    name: 'an entry without key',
    differs: 'the reference takes it for a key like any other; it is a mistake of the caller',
    rules: RULES,
    steps: [
      {
        ask: [{ entries: [['', 'x']] }, 'user=ann'],
        get: { error: { code: INVALID_ARGUMENT, text: /key/ } },
        reference: [NONE, ok('2/hour', 1)],
      },
      { ask: 'user=bob', get: [ok('2/hour', 1)] },
    ],
  },
];

/** The policy is invalid, and the service is forced to start. */
export const NO_CONFIGURATION: readonly ReferenceCase[] = [
  {
    name: 'without a configuration every request fails',
    differs: 'the code is UNAVAILABLE; the reference has the code UNKNOWN for everything',
    files: { 'bad.yaml': 'domain: bad\ndescriptors:\n  - key: a\n    rate_limit: { unit: never }\n' },
    steps: [
      {
        ask: 'a=1',
        get: { error: { code: 14, text: 'no rate limit configuration loaded' } },
        reference: { error: { code: UNKNOWN, text: 'no rate limit configuration loaded' } },
      },
      {
        ask: 'a=1',
        domain: '',
        get: { error: { code: INVALID_ARGUMENT, text: 'rate limit domain must not be empty' } },
        reference: { error: { code: UNKNOWN, text: 'rate limit domain must not be empty' } },
      },
      { http: '/healthcheck', status: 200, text: 'OK' },
      { health: 'ratelimit', is: 'SERVING' },
      { http: '/rlconfig', port: 'debug', status: 200, text: '' },
    ],
    counters: { [SERVICE_ERROR]: 2 },
  },
];

/** An empty directory, and HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true. */
export const NOT_HEALTHY: readonly ReferenceCase[] = [
  {
    name: 'without a domain it is not healthy and decides',
    steps: [
      { http: '/healthcheck', status: 500 },
      { health: 'ratelimit', is: 'NOT_SERVING' },
      { health: '', is: 'NOT_SERVING', reference: 'SERVING' },
      { ask: 'a=1', domain: 'anything', get: [NONE] },
    ],
  },
];

/** An empty directory. */
export const EMPTY_DIRECTORY: readonly ReferenceCase[] = [
  {
    name: 'without files there are no domains',
    steps: [
      { http: '/healthcheck', status: 200, text: 'OK' },
      { health: 'ratelimit', is: 'SERVING' },
      { http: '/rlconfig', port: 'debug', status: 200, text: '' },
      { ask: 'a=1', domain: 'anything', get: [NONE] },
    ],
  },
];

/** Redis is unavailable. */
export const REDIS_GONE: readonly ReferenceCase[] = [
  {
    name: 'without Redis what needs it fails and the rest is answered',
    differs:
      'the code is UNAVAILABLE and the cause stays in the log; the reference has the code UNKNOWN and tells it',
    rules: `${RULES}
  - key: free
    rate_limit: { unlimited: true }
`,
    steps: [
      {
        ask: 'user=ann',
        get: { error: { code: 14, text: /./ } },
        reference: { error: { code: UNKNOWN, text: /./ } },
      },
      { ask: 'nothing=1', get: [NONE] },
      {
        http: '/json',
        body: '{"domain": "<domain>", "descriptors": [{"entries": [{"key": "user", "value": "ann"}]}]}',
        status: 503,
        reference: { status: 400 },
      },
      { http: '/healthcheck', status: 200, text: 'OK' },
    ],
    counters: { 'ratelimit.service.call.should_rate_limit.redis_error': 2 },
  },
];
