import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../src/config/diff/diff-policies.js';
import type { POLICY_FIELDS } from '../../../src/config/read/policy-fields.js';
import { dumpJson } from '../../../src/config/show/dump.js';
import { dumpTree } from '../../../src/config/show/dump-tree.js';
import { explain } from '../../../src/config/show/explain.js';
import { explanationJson, renderExplanation } from '../../../src/config/show/explain-text.js';
import { policyItems } from '../../../src/config/threads/policy-transfer.js';
import type { PolicySet } from '../../../src/policy/compiled-policy.js';
import { policyOf, setOf } from '../../support/policy/policies.js';
import { transferredPolicies } from '../../support/policy/transferred-policies.js';

/**
 * Every field of the policy format must be shown, compared and transferred. For a new field, the compiler requires an
 * entry in CHANGES, and a failing test then names the file that does not handle the field.
 */

const NOW = Date.parse('2026-01-01T00:00:00Z') * 1000;
const LIMIT = 'unit: minute, requests_per_unit: 5';
const FILLS = 'max_tokens: 5, tokens_per_fill: 1, fill_interval: 1s';
const BUCKET = `token_bucket: { ${FILLS} }`;
/** An item of `derive`. */
const STEP = 'entry: k, from: [m], rules: [{ value: v }]';
const NODE = `key: k, rate_limit: { ${LIMIT} }`;
const digest = (key: string): string => createHash('sha256').update(key).digest('hex');

type Mappings = typeof POLICY_FIELDS;
type Mapping = keyof Mappings;
/** Fields of a mapping before and after. */
type Change = readonly [before: string, after: string];

/** Returns a policy that contains the fields in the given mapping. */
const POLICY_WITH: Readonly<Record<Mapping, (fields: string) => string>> = {
  file: (fields) =>
    [
      /^domain/.test(fields) ? '' : 'domain: d',
      fields,
      /^descriptors/.test(fields) ? '' : `descriptors: [{ ${NODE} }]`,
    ].join('\n'),
  descriptor: (fields) => descriptors(`{ ${fields} }`),
  rate_limit: (fields) => descriptors(`{ key: k, rate_limit: { ${fields} } }`),
  rate_limits_item: (fields) =>
    descriptors(
      `{ key: k, descriptors: [{ key: k, rate_limits: [{ ${fields} }, { name: other, ${LIMIT} }] }] }`,
    ),
  token_bucket: (fields) => descriptors(`{ key: k, rate_limit: { token_bucket: { ${fields} } } }`),
  concurrency: (fields) => descriptors(`{ key: k, rate_limit: { concurrency: { ${fields} } } }`),
  hold: (fields) => descriptors(`{ key: k, rate_limit: { ${LIMIT}, hold: { ${fields} } } }`),
  priorities: (fields) =>
    descriptors(`{ key: k, descriptors: [{ key: m, rate_limit: { ${LIMIT}, priorities: { ${fields} } } }] }`),
  lease: (fields) =>
    descriptors(`{ key: k, rate_limit: { ${LIMIT}, algorithm: token_bucket, lease: { ${fields} } } }`),
  replaced_rule: (fields) => descriptors(`{ key: k, rate_limit: { ${LIMIT}, replaces: [{ ${fields} }] } }`),
  denied_response: (fields) =>
    descriptors(`{ key: k, rate_limit: { ${LIMIT}, denied_response: { ${fields} } } }`),
  on_over: (fields) =>
    descriptors(`{ key: k, rate_limit: { ${LIMIT}${fields && `, on_over: { ${fields} }`} } }`),
  phase_schedule: (fields) => descriptors(`{ key: k, phase: { ${fields} }, rate_limit: { ${LIMIT} } }`),
  local_share: (fields) =>
    descriptors(`{ key: k, rate_limit: { ${LIMIT}, on_store_failure: { ${fields} } } }`),
  plans: (fields) => plans(`{ ${fields} }`, '{ plan: burst, default: 5 }'),
  plan_value: (fields) => plans(PLANS, `{ ${fields} }`),
  derive_item: (fields) => `${descriptors(`{ ${NODE} }`)}\nderive: [{ ${fields} }]`,
  derive_rule: (fields) =>
    `${descriptors(`{ ${NODE} }`)}\nderive: [{ entry: k, from: [m], rules: [{ m: GET, ${fields} }] }]`,
};

/** Returns a policy with plans and one limit of a plan. */
function plans(settings: string, value: string): string {
  const limit = `rate_limit: { unit: hour, requests_per_unit: ${value} }`;
  return `domain: d\nplans: ${settings}\ndescriptors: [{ key: k, descriptors: [{ key: m, ${limit} }] }]`;
}

/** The plans of a file. */
const PLAN_FIELDS = 'by: k, define: { v: { burst: 7 } }';
const PLANS = '{ by: k, define: { v: { blocked: true } } }';

function descriptors(one: string): string {
  const [first, second] = ['first', 'second'].map(
    (name) => `{ key: ${name}, rate_limit: { name: ${name}, ${LIMIT} } }`,
  );
  return `domain: d\ndescriptors: [${one}, ${first}, ${second}]`;
}

/** Fields that set the rate. */
const RATES = {
  token_bucket: [BUCKET, BUCKET.replace('5', '6')],
  unit: [LIMIT, LIMIT.replace('minute', 'hour')],
  requests_per_unit: [LIMIT, LIMIT.replace('5', '6')],
  unit_multiplier: [LIMIT, `${LIMIT}, unit_multiplier: 2`],
  calendar: ['unit: day, requests_per_unit: 5', 'unit: day, requests_per_unit: 5, calendar: Europe/Berlin'],
  algorithm: [LIMIT, `${LIMIT}, algorithm: token_bucket`],
  burst: [`${LIMIT}, algorithm: token_bucket`, `${LIMIT}, algorithm: token_bucket, burst: 9`],
  concurrency: ['concurrency: { max: 5 }', 'concurrency: { max: 6 }'],
  hold: [LIMIT, `${LIMIT}, hold: { amount: 2 }`],
  priorities: [LIMIT, `${LIMIT}, priorities: { by: k, keep: { v: 2, w: 0 } }`],
  lease: [LIMIT, `${LIMIT}, lease: { for: 50ms }`],
  allow_debt: [LIMIT, `${LIMIT}, allow_debt: true`],
  max_debt: [`${LIMIT}, allow_debt: true`, `${LIMIT}, allow_debt: true, max_debt: 2`],
} as const;

/** Fields that set the answer to a denied request, here next to a limit. */
const ANSWERS = {
  on_store_failure: [LIMIT, `${LIMIT}, on_store_failure: deny`],
  response_headers: [LIMIT, `${LIMIT}, response_headers: [ratelimit]`],
  request_headers: [LIMIT, `${LIMIT}, request_headers: [ratelimit]`],
  denied_response: [LIMIT, `${LIMIT}, denied_response: problem+json`],
  on_over: [LIMIT, `${LIMIT}, on_over: { allow: true }`],
} as const;

const CHANGES: { readonly [M in Mapping]: Readonly<Record<keyof Mappings[M], Change>> } = {
  file: {
    domain: ['domain: d', 'domain: other'],
    phase: ['', 'phase: monitoring'],
    algorithm: ['', 'algorithm: token_bucket'],
    response_headers: ['', 'response_headers: [ratelimit]'],
    request_headers: ['', 'request_headers: [ratelimit]'],
    denied_response: ['', 'denied_response: problem+json'],
    decision_metadata: ['', 'decision_metadata: true'],
    on_store_failure: ['', 'on_store_failure: deny'],
    on_unmatched: ['', 'on_unmatched: ignore'],
    enforce_percent: ['', 'enforce_percent: 50'],
    lease: ['', 'lease: { for: 50ms }'],
    derive: ['', `derive: [{ ${STEP} }]`],
    plans: [
      `descriptors: [{ ${NODE} }]`,
      `descriptors: [{ ${NODE.replace('5', '{ plan: burst, default: 5 }')} }]\nplans: { ${PLAN_FIELDS} }`,
    ],
    descriptors: ['', `descriptors: [{ key: other, rate_limit: { ${LIMIT} } }]`],
  },
  descriptor: {
    key: [NODE, NODE.replace('key: k', 'key: other')],
    value: [NODE, `${NODE}, value: v`],
    value_cidr: [NODE, `${NODE}, value_cidr: [10.0.0.0/8]`],
    value_regex: [NODE, `${NODE}, value_regex: [a+]`],
    phase: [NODE, `${NODE}, phase: monitoring`],
    share_threshold: [`${NODE}, value: "v*"`, `${NODE}, value: "v*", share_threshold: true`],
    shadow_mode: [NODE, `${NODE}, shadow_mode: true`],
    quota_mode: [NODE, `${NODE}, quota_mode: true`],
    detailed_metric: [NODE, `${NODE}, detailed_metric: true`],
    value_to_metric: [NODE, `${NODE}, value_to_metric: true`],
    metadata: [NODE, `${NODE}, metadata: { team: a }`],
    rate_limit: ['key: k', NODE],
    rate_limits: [NODE, `key: k, rate_limits: [{ ${LIMIT} }]`],
    enforce_percent: [NODE, `${NODE}, enforce_percent: 50`],
    on_unmatched: [NODE, `${NODE}, on_unmatched: ignore`],
    descriptors: [NODE, `${NODE}, descriptors: [{ ${NODE} }]`],
  },
  rate_limit: {
    name: [LIMIT, `name: n, ${LIMIT}`],
    replaces: [LIMIT, `${LIMIT}, replaces: [{ name: first }]`],
    ...RATES,
    unlimited: [LIMIT, 'unlimited: true'],
    ...ANSWERS,
  },
  rate_limits_item: {
    name: [`name: one, ${LIMIT}`, `name: n, ${LIMIT}`],
    replaces: [LIMIT, `${LIMIT}, replaces: [{ name: first }]`],
    ...RATES,
    ...ANSWERS,
    phase: [LIMIT, `${LIMIT}, phase: monitoring`],
    // biome-ignore lint/suspicious/noThenProperty: a key of policies
    then: [
      `name: one, ${LIMIT} }, { name: two, ${LIMIT}`,
      `name: one, then: two, ${LIMIT} }, { name: two, ${LIMIT}`,
    ],
    shadow_mode: [LIMIT, `${LIMIT}, shadow_mode: true`],
    enforce_percent: [LIMIT, `${LIMIT}, enforce_percent: 50`],
  },
  token_bucket: {
    max_tokens: [FILLS, FILLS.replace('5', '6')],
    tokens_per_fill: [FILLS, FILLS.replace('fill: 1', 'fill: 2')],
    fill_interval: [FILLS, FILLS.replace('1s', '2s')],
  },
  concurrency: {
    max: ['max: 5', 'max: 6'],
    expires_after: ['max: 5', 'max: 5, expires_after: 61s'],
    retry_after: ['max: 5', 'max: 5, retry_after: 5s'],
  },
  hold: {
    amount: ['amount: 2', 'amount: 3'],
    from: ['amount: 2', 'from: first_call'],
    expires_after: ['amount: 2', 'amount: 2, expires_after: 11m'],
    unknown: ['amount: 2', 'amount: 2, unknown: free'],
    pair: ['amount: 2', 'amount: 2, pair: oldest'],
  },
  priorities: {
    by: ['by: k, keep: { v: 2 }', 'by: m, keep: { v: 2 }'],
    keep: ['by: m, keep: { v: 2 }', 'by: m, keep: { v: 50% }'],
    unknown: ['by: m, keep: { v: 2, w: 0 }', 'by: m, keep: { v: 2, w: 0 }, unknown: w'],
  },
  lease: {
    for: ['for: 50ms', 'for: 60ms'],
    max: ['for: 50ms', 'for: 50ms, max: 50'],
    exact: ['for: 50ms', 'for: 50ms, exact: false'],
  },
  replaced_rule: { name: ['name: first', 'name: second'] },
  denied_response: {
    body: ['body: a', 'body: bc'],
    content_type: ['body: a', 'body: a, content_type: text/html'],
  },
  on_over: {
    allow: ['', 'allow: true'],
    request_headers: ['allow: true', 'allow: true, request_headers: [{ x-over: soft }]'],
    metadata: ['allow: true', 'allow: true, metadata: { tier: low }'],
  },
  phase_schedule: {
    grace_period: [
      'active: 2026-03-01T00:00:00Z',
      'active: 2026-03-01T00:00:00Z, grace_period: 2026-02-01T00:00:00Z',
    ],
    active: [
      'grace_period: 2026-02-01T00:00:00Z',
      'grace_period: 2026-02-01T00:00:00Z, active: 2026-03-01T00:00:00Z',
    ],
  },
  local_share: { local: ['local: 0.25', 'local: 0.5'] },
  derive_item: {
    entry: [STEP, STEP.replace('k', 'first')],
    from: [STEP, STEP.replace('[m]', '[n]')],
    rules: [STEP, STEP.replace('value', 'm: GET, value')],
    sha256: [
      `entry: k, from: [m], sha256: { ${digest('a')}: v }`,
      `entry: k, from: [m], sha256: { ${digest('a')}: w }`,
    ],
    sha256_file: ['entry: k, from: [m], sha256_file: one', 'entry: k, from: [m], sha256_file: two'],
  },
  plans: {
    by: ['by: k, define: { v: { burst: 7 } }', 'by: m, define: { v: { burst: 7 } }'],
    from: ['by: k, from: rows.csv', 'by: k, from: other.csv'],
    columns: ['by: k, from: rows.csv, columns: [plan]', 'by: k, from: rows.csv, columns: [plan, burst]'],
    default: [PLAN_FIELDS, `${PLAN_FIELDS}, default: v`],
    define: [PLAN_FIELDS, PLAN_FIELDS.replace('7', '9')],
    max_drop: [PLAN_FIELDS, `${PLAN_FIELDS}, max_drop: 50`],
    max_drop_from: [PLAN_FIELDS, `${PLAN_FIELDS}, max_drop_from: 50`],
  },
  plan_value: {
    plan: ['plan: burst, default: 5', 'plan: rate, default: 5'],
    default: ['plan: burst, default: 5', 'plan: burst, default: 6'],
  },
  derive_rule: { value: ['value: v', 'value: w'] },
};

const FILES = {
  'rows.csv': 'k,plan,burst\nv,,7\n',
  'other.csv': 'k,burst\nv,9\n',
  one: `${digest('a')}: v\n`,
  two: `${digest('a')}: w\n`,
};

/** Fields that a view omits intentionally. */
const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  // These fields apply to new versions of the file, not to a descriptor.
  'src/config/show/explain.ts': ['plans.max_drop', 'plans.max_drop_from'],
  // The view shows limits. These fields set the answer for requests without a limit, or the number of buckets.
  'src/config/show/dump.ts': [
    'descriptor.share_threshold',
    'descriptor.on_unmatched',
    // Key tables are secret.
    'derive_item.sha256',
    'derive_item.sha256_file',
  ],
  'src/config/show/dump-tree.ts': [
    // These fields only affect statistics.
    'descriptor.detailed_metric',
    'descriptor.value_to_metric',
    // A list of one limit shows that limit.
    'descriptor.rate_limits',
    'derive_item.sha256',
    'derive_item.sha256_file',
  ],
};

const json = (set: PolicySet): string =>
  JSON.stringify(
    dumpJson(
      set,
      [...set.domains.keys()].map((domain) => ({ domain, state: 'ok', files: ['policy.yaml'] })),
      [],
      NOW,
    ),
  );
const tree = (set: PolicySet): string => dumpTree(set, NOW);
/** Returns the output of weir explain, as text and JSON, for the policies of {@link POLICY_WITH}. */
const explained = (set: PolicySet): string => {
  const asked = [
    'k=v',
    'k=10.0.0.1',
    'k=aaa',
    'first=v',
    'k=v,k=v',
    'm=GET',
    'm=a',
    'k=v,m=v',
    'k=w,m=v',
    'k=v,m=x',
  ];
  return asked
    .map((text) => {
      const entries = text.split(',').map((entry) => {
        const [key = '', value = ''] = entry.split('=');
        return { key, value };
      });
      const explanation = explain(set, 'd', entries);
      const asJson = explanationJson(explanation, NOW, () => undefined);
      // The time of the load differs between two policies.
      const untimed = JSON.stringify(asJson).replace(/"read_at":"[^"]*"/, '');
      return renderExplanation(explanation, NOW) + untimed;
    })
    .join('\n');
};

const FIELDS = Object.entries(CHANGES).flatMap(([mapping, changes]) =>
  Object.entries(changes).map(([field, change]) => ({
    name: `${mapping}.${field}`,
    mapping: mapping as Mapping,
    change: change as Change,
  })),
);

describe('every field of the policy format', () => {
  test.each(FIELDS)('$name is shown, compared and transferred', ({ name, mapping, change }) => {
    const [before, after] = change.map((fields) => setOf(policyOf(POLICY_WITH[mapping](fields), FILES))) as [
      PolicySet,
      PolicySet,
    ];
    const there = transferredPolicies(policyItems(after), after.version);
    const handles: Readonly<Record<string, boolean>> = {
      'src/config/show/dump.ts': json(before) !== json(after),
      'src/config/show/dump-tree.ts': tree(before) !== tree(after),
      'src/config/show/explain.ts': explained(before) !== explained(after),
      'src/config/diff': diffPolicies(before, after, NOW).length > 0,
      'src/config/threads/policy-transfer.ts': json(there) === json(after) && tree(there) === tree(after),
    };
    const missing = Object.keys(handles).filter((file) => handles[file] !== !LEFT_OUT[file]?.includes(name));
    expect(missing).toEqual([]);
  });
});
