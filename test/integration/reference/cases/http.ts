import { type HttpStep, ok, type ReferenceCase } from '../case.js';

const RULES = `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: named
    value: x*
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 5, name: n }
  - key: pool
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: free
    rate_limit: { unlimited: true }
`;

function json(descriptors: unknown, more: object = {}): string {
  return JSON.stringify({ domain: '<domain>', descriptors, ...more });
}

const ANN = [{ entries: [{ key: 'user', value: 'ann' }] }];
const BAD: Omit<HttpStep, 'http'> = {
  status: 400,
  type: 'text/plain; charset=utf-8',
  // A second line can give the reason.
  text: /^Bad Request\n/,
};

function annLeft(limitRemaining: number): object {
  return {
    overallCode: 'OK',
    statuses: [
      {
        code: 'OK',
        currentLimit: { requestsPerUnit: 2, unit: 'HOUR' },
        ...(limitRemaining > 0 && { limitRemaining }),
        durationUntilReset: '<reset>',
      },
    ],
  };
}

const ANN_OVER = {
  overallCode: 'OVER_LIMIT',
  statuses: [
    { code: 'OVER_LIMIT', currentLimit: { requestsPerUnit: 2, unit: 'HOUR' }, durationUntilReset: '<reset>' },
  ],
};

function bad(name: string, body: string): ReferenceCase {
  return {
    name,
    differs: 'the reference says Bad Request and no more',
    rules: RULES,
    steps: [{ http: '/json', method: 'POST', body, ...BAD }],
  };
}

/** POST /json. */
export const JSON_CASES: readonly ReferenceCase[] = [
  {
    name: 'json until it is over',
    rules: RULES,
    resetOf: 'hour',
    steps: [
      { http: '/json', body: json(ANN), status: 200, type: 'application/json', json: annLeft(1) },
      { http: '/json', body: json(ANN), status: 200, json: annLeft(0) },
      { http: '/json', body: json(ANN), status: 429, type: 'application/json', json: ANN_OVER },
    ],
    stats: { 'user.total_hits': 3, 'user.within_limit': 2, 'user.near_limit': 1, 'user.over_limit': 1 },
  },
  {
    name: 'json and gRPC count together',
    rules: RULES,
    resetOf: 'hour',
    steps: [
      { ask: 'user=ann', get: [ok('2/hour', 1)] },
      { http: '/json', body: json(ANN), status: 200, json: annLeft(0) },
    ],
  },
  {
    name: 'json of what has no limit and of what is unlimited',
    rules: RULES,
    steps: [
      {
        http: '/json',
        body: json([{ entries: [{ key: 'none' }] }, { entries: [{ key: 'free', value: '1' }] }, {}]),
        status: 200,
        json: {
          overallCode: 'OK',
          statuses: [{ code: 'OK' }, { code: 'OK', limitRemaining: 4294967295 }, { code: 'OK' }],
        },
      },
      {
        http: '/json',
        body: '{"domain": "nobody", "descriptors": [{"entries": [{"key": "a", "value": "b"}]}]}',
        status: 200,
        json: { overallCode: 'OK', statuses: [{ code: 'OK' }] },
      },
    ],
  },
  {
    name: 'json of a rule with a name',
    rules: RULES,
    resetOf: 'hour',
    steps: [
      {
        http: '/json',
        body: json([{ entries: [{ key: 'named', value: 'xyz' }] }]),
        status: 200,
        json: {
          overallCode: 'OK',
          statuses: [
            {
              code: 'OK',
              currentLimit: { name: 'n', requestsPerUnit: 5, unit: 'HOUR' },
              limitRemaining: 4,
              durationUntilReset: '<reset>',
            },
          ],
        },
      },
    ],
  },
  {
    name: 'json names of fields in both ways',
    rules: RULES,
    resetOf: 'hour',
    steps: [
      { http: '/json', body: json(ANN, { hits_addend: 2 }), status: 200, json: annLeft(0) },
      { http: '/json', body: json(ANN, { hitsAddend: 1 }), status: 429, json: ANN_OVER },
    ],
  },
  {
    name: 'json numbers as numbers and as texts',
    rules: RULES,
    resetOf: 'hour',
    steps: [
      { http: '/json', body: json([{ ...ANN[0], hitsAddend: '0' }]), status: 200, json: annLeft(2) },
      { http: '/json', body: json([{ ...ANN[0], hits_addend: 1 }]), status: 200, json: annLeft(1) },
      { http: '/json', body: json(ANN, { hitsAddend: '1' }), status: 200, json: annLeft(0) },
    ],
  },
  {
    name: 'json null is absent',
    rules: RULES,
    resetOf: 'hour',
    steps: [
      {
        http: '/json',
        body: json([{ ...ANN[0], limit: null, hitsAddend: null }], { hitsAddend: null }),
        status: 200,
        json: annLeft(1),
      },
    ],
  },
  {
    name: 'json overrides by name and by number of the unit',
    rules: RULES,
    resetOf: 'day',
    steps: ['DAY', 4].map((unit) => ({
      http: '/json',
      body: json([{ entries: [{ key: 'over', value: String(unit) }], limit: { requestsPerUnit: 7, unit } }]),
      status: 200,
      json: {
        overallCode: 'OK',
        statuses: [
          {
            code: 'OK',
            currentLimit: { requestsPerUnit: 7, unit: 'DAY' },
            limitRemaining: 6,
            durationUntilReset: '<reset>',
          },
        ],
      },
    })),
  },
  {
    name: 'json hits beyond every limit',
    rules: RULES,
    resetOf: 'hour',
    steps: [
      {
        http: '/json',
        body: json([{ ...ANN[0], hitsAddend: '4611686018427387904' }]),
        status: 429,
        json: ANN_OVER,
      },
    ],
  },
  {
    name: 'json hits of 2 to the 64 less one',
    differs: 'the reference hands them to Redis as a negative number',
    notReference: true,
    rules: RULES,
    resetOf: 'hour',
    steps: [
      {
        http: '/json',
        body: json([{ ...ANN[0], hitsAddend: '18446744073709551615' }]),
        status: 429,
        json: ANN_OVER,
      },
      { http: '/json', body: json(ANN), status: 429, json: ANN_OVER },
    ],
  },
  bad('json without a body', ''),
  bad('invalid JSON', '}'),
  bad('json that is cut off', '{"domain": "x"'),
  bad('json with a word that the message does not have', json(ANN, { nonsense: 1 })),
  bad('json with a number for a text', '{"domain": 5, "descriptors": []}'),
  bad('json with a negative number of hits', json(ANN, { hitsAddend: -1 })),
  bad('json with hits beyond 32 bits', json(ANN, { hitsAddend: 4294967296 })),
  bad('json with hits in the descriptor beyond 64 bits', json([{ hitsAddend: '18446744073709551616' }])),
  bad('JSON with an invalid unit', json([{ limit: { requestsPerUnit: 1, unit: 'FORTNIGHT' } }])),
  bad('json with a list at the top', '[]'),
  bad('json with a text of more than one', '{} {}'),
  bad('json without a domain', '{"descriptors": [{"entries": [{"key": "a", "value": "b"}]}]}'),
  bad('json without descriptors', json([])),
  bad('json of an empty message', '{}'),
  bad('json with a field twice', json(ANN).replace('{', '{"domain":"<domain>",')),
  bad('json with a field twice, once null', json(ANN).replace('{', '{"domain":null,')),
  bad('json with a field in both spellings', json(ANN, { hitsAddend: 1, hits_addend: 1 })),
  bad('json with a field of an entry twice', json(ANN).replace('"key":', '"key":"user","key":')),
  {
    name: 'json by GET has no body',
    rules: RULES,
    steps: [{ http: '/json', method: 'GET', ...BAD }],
  },
  {
    name: 'json by PUT and with another content type',
    rules: RULES,
    resetOf: 'hour',
    steps: [
      {
        http: '/json',
        method: 'PUT',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: json(ANN),
        status: 200,
        json: annLeft(1),
      },
    ],
  },
];

/** Further HTTP: health, the debug port. */
export const HTTP_CASES: readonly ReferenceCase[] = [
  {
    name: 'healthcheck says OK',
    steps: [
      { http: '/healthcheck', status: 200, text: 'OK' },
      { http: '/healthcheck', method: 'POST', body: 'x', status: 200, text: 'OK' },
    ],
  },
  {
    name: 'other paths are not found',
    steps: [
      { http: '/', status: 404 },
      { http: '/nothing', status: 404 },
      { http: '/json/', status: 404 },
      { http: '/rlconfig', status: 404 },
    ],
  },
  {
    name: 'rlconfig shows every rule in a line',
    rules: `${RULES}
  - key: a
    value: b
    descriptors:
      - key: c
        value: "*"
        rate_limit: { unit: week, requests_per_unit: 0 }
  - key: bare
`,
    steps: [
      {
        http: '/rlconfig',
        port: 'debug',
        status: 200,
        lines: [
          '<domain>.user: unit=HOUR requests_per_unit=2, shadow_mode: false, quota_mode: false',
          '<domain>.named_x*: unit=HOUR requests_per_unit=5, shadow_mode: true, quota_mode: false',
          '<domain>.pool: unit=HOUR requests_per_unit=1, shadow_mode: false, quota_mode: true',
          '<domain>.free: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false',
          '<domain>.a_b.c_*: unit=WEEK requests_per_unit=0, shadow_mode: false, quota_mode: false',
        ],
      },
      { http: '/rlconfig', port: 'debug', status: 200, text: /^(?!.*\.bare)[\s\S]*\n$/ },
    ],
  },
  {
    name: 'the debug port lists its endpoints',
    steps: [
      { http: '/', port: 'debug', status: 200, text: /^\/rlconfig: .+\n[\s\S]*^\/stats: .+\n/m },
      { http: '/stats', port: 'debug', status: 200, text: /./ },
    ],
  },
  {
    name: 'gRPC health of the service',
    steps: [
      { health: 'ratelimit', is: 'SERVING' },
      { health: '', is: 'SERVING' },
      { health: 'something-else', is: 5 },
    ],
  },
];

/** LIMIT_RESPONSE_HEADERS_ENABLED and RESPONSE_DYNAMIC_METADATA in JSON. */
export const JSON_EXTRAS: readonly ReferenceCase[] = [
  {
    name: 'json with headers and metadata',
    rules: `
  - key: user
    metadata: { team: { name: red } }
    rate_limit: { unit: week, requests_per_unit: 1000 }
`,
    resetOf: 'week',
    steps: [
      {
        http: '/json',
        body: json([{ entries: [{ key: 'user', value: 'ann' }], hitsAddend: '0' }]),
        status: 200,
        json: {
          overallCode: 'OK',
          statuses: [
            {
              code: 'OK',
              currentLimit: { requestsPerUnit: 1000, unit: 'WEEK' },
              limitRemaining: 1000,
              durationUntilReset: '<reset>',
            },
          ],
          responseHeadersToAdd: [
            { key: 'RateLimit-Limit', value: '1000' },
            { key: 'RateLimit-Remaining', value: '1000' },
            { key: 'RateLimit-Reset', value: '<reset>' },
          ],
          dynamicMetadata: {
            domain: 'json-with-headers-and-metadata',
            descriptors: [{ entries: ['user=ann'], hitsAddend: 0 }],
            metadata: { team: { name: 'red' } },
          },
        },
      },
    ],
  },
];
