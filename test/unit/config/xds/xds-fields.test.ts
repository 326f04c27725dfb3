/** Every key of the policy file as a field of an xDS resource: the list, the proto file, and the converted values. */

import { loadSync } from '@grpc/proto-loader';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { readDocuments } from '../../../../src/config/files/load-policies.js';
import type { Field, MappingName } from '../../../../src/config/read/field.js';
import { POLICY_FIELDS } from '../../../../src/config/read/policy-fields.js';
import { createDiscoveryCodec, RATE_LIMIT_CONFIG_TYPE } from '../../../../src/config/xds/discovery.js';
import { readUpdate } from '../../../../src/config/xds/load-update.js';
import {
  type ConfigProblem,
  formatProblem,
  ProblemList,
} from '../../../../src/config/yaml/config-problem.js';
import { parseYaml, type YamlValue } from '../../../../src/config/yaml/yaml-document.js';
import { assetPath } from '../../../../src/runtime/assets.js';
import { fieldsOf, resourceOf } from '../../../support/xds/policy-resource.js';
import { encodeConfig } from '../../../support/xds/xds-server.js';

interface ProtoField {
  readonly name: string;
  readonly number: number;
  readonly label: string;
  readonly type: string;
  readonly typeName: string;
  readonly oneofIndex: number;
}
const PACKAGE = 'ratelimit.config.ratelimit.v3';
const definition = loadSync('ratelimit/config/ratelimit/v3/rls_conf.proto', {
  includeDirs: [assetPath('proto')],
  keepCase: true,
});
const protoFields = (message: string): readonly ProtoField[] =>
  (
    definition[message.includes('.') ? message : `${PACKAGE}.${message}`] as {
      readonly type: { readonly field: readonly ProtoField[] };
    }
  ).type.field;

/** The message of each mapping that a management server can send. */
const MESSAGES: Readonly<Record<Exclude<MappingName, 'plans' | 'plan_value'>, string>> = {
  file: 'RateLimitConfig',
  descriptor: 'RateLimitDescriptor',
  rate_limit: 'RateLimitPolicy',
  rate_limits_item: 'RateLimitPolicy',
  token_bucket: 'envoy.type.v3.TokenBucket',
  concurrency: 'Concurrency',
  hold: 'Hold',
  priorities: 'Priorities',
  lease: 'Lease',
  replaced_rule: 'RateLimitReplace',
  denied_response: 'DeniedBody',
  on_over: 'OnOver',
  phase_schedule: 'PhaseSchedule',
  local_share: 'LocalShare',
  derive_item: 'DeriveItem',
  derive_rule: 'DeriveRule',
};

/** Fields of messages that are not keys. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  RateLimitConfig: ['name'],
  DeriveRule: ['conditions'],
  // Removed keys.
  RateLimitDescriptor: ['candidate'],
  Hold: ['learned'],
};

/** Fields that envoyproxy/ratelimit knows. */
const REFERENCE: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  RateLimitConfig: { name: 1, domain: 2, descriptors: 3 },
  RateLimitDescriptor: {
    key: 1,
    value: 2,
    rate_limit: 3,
    descriptors: 4,
    shadow_mode: 5,
    detailed_metric: 6,
    quota_mode: 7,
    metadata: 8,
  },
  RateLimitPolicy: { unit: 1, requests_per_unit: 2, unlimited: 3, name: 4, replaces: 5 },
  RateLimitReplace: { name: 1 },
};

/** Returns the field type of a key: `label type typeName`, and ` with presence`. */
function wireForm(field: Field): string {
  const message = (name: MappingName): string => MESSAGES[name as keyof typeof MESSAGES];
  if (field.kind === 'mapping') return `OPTIONAL MESSAGE ${message(field.of)}`;
  if (field.kind === 'list') return `REPEATED MESSAGE ${message(field.of)}`;
  if (field.xds === 'wrapped') return 'OPTIONAL MESSAGE google.protobuf.UInt32Value';
  if (field.xds === 'preset') return 'OPTIONAL MESSAGE DeniedResponse';
  const form = {
    text: 'OPTIONAL STRING',
    name: 'OPTIONAL STRING',
    word: 'OPTIONAL STRING',
    word_or_mapping: 'OPTIONAL STRING',
    unit: 'OPTIONAL ENUM RateLimitUnit',
    flag: 'OPTIONAL BOOL',
    count: 'OPTIONAL UINT32',
    number: 'OPTIONAL DOUBLE with presence',
    texts: 'REPEATED STRING',
    words: 'REPEATED STRING',
    duration: 'OPTIONAL MESSAGE google.protobuf.Duration',
    time: 'OPTIONAL MESSAGE google.protobuf.Timestamp',
    metadata: 'OPTIONAL MESSAGE google.protobuf.Struct',
    key_table: 'OPTIONAL MESSAGE KeyTable',
    // The name that protobufjs gives to the entries of a map.
    headers: 'REPEATED MESSAGE Request_headers',
    kept_hits: 'REPEATED MESSAGE Keep',
    plan_values: '',
    any: '',
  }[field.kind];
  return field.xds === 'optional' ? `${form} with presence` : form;
}

function protoForm(field: ProtoField): string {
  const bare = ({ label, type, typeName }: ProtoField): string =>
    [label.slice('LABEL_'.length), type.slice('TYPE_'.length), typeName.replace(`${PACKAGE}.`, '')]
      .join(' ')
      .trim();
  // proto-loader turns each `optional` field into a oneof and then sets its options.
  const hasPresence = (field as { readonly options?: object | null }).options !== null;
  return bare(field) + (hasPresence ? ' with presence' : '');
}

const mappings = Object.keys(POLICY_FIELDS) as readonly MappingName[];

describe('the messages', () => {
  test.each([...new Set(Object.values(MESSAGES))])(
    '%s has the keys of the policy file, and no others',
    (message) => {
      const keys = mappings
        .filter((name) => MESSAGES[name as keyof typeof MESSAGES] === message)
        .flatMap((name) => Object.entries(fieldsOf(name)));
      const expected = new Map(
        keys.flatMap(([key, field]): readonly (readonly [string, string])[] => {
          const { xds } = field;
          if (xds === 'file_only') return [];
          if (field.kind !== 'word_or_mapping' || typeof xds !== 'object') return [[key, wireForm(field)]];
          const other = MESSAGES[field.of as keyof typeof MESSAGES];
          return [
            [key, wireForm(field)],
            [xds.mappingIn, `OPTIONAL MESSAGE ${other}`],
          ];
        }),
      );
      const found = protoFields(message).filter(({ name }) => OTHERS[message]?.includes(name) !== true);
      expect(Object.fromEntries(found.map((field) => [field.name, protoForm(field)]))).toEqual(
        Object.fromEntries(expected),
      );
    },
  );

  test.each(Object.entries(REFERENCE))(
    "%s has weir's own fields only from number 1000 on",
    (message, known) => {
      const numbers = Object.fromEntries(
        protoFields(message).flatMap(({ name, number }) => (number < 1000 ? [[name, number]] : [])),
      );
      expect(numbers).toEqual(known);
    },
  );

  test('has no field for the name of a file', () => {
    const fileOnly = mappings.flatMap((name) =>
      Object.entries(fieldsOf(name)).flatMap(([key, { xds }]) =>
        xds === 'file_only' ? [`${name}.${key}`] : [],
      ),
    );
    const others = fileOnly.filter((name) => !/^plan(?:s|_value)\./.test(name));
    expect(others).toEqual(['file.plans', 'derive_item.sha256_file']);
  });
});

const codec = createDiscoveryCodec();
const digest = 'a'.repeat(64);

const DAY = 'unit: day, requests_per_unit: 5';
const limits = (item: string): string => `descriptors: [{ key: k, rate_limits: [{ ${item} }] }]`;
const limit = (fields: string): string => `descriptors: [{ key: k, rate_limit: { ${fields} } }]`;
const node = (fields: string): string => `descriptors: [{ key: k, rate_limit: { ${DAY} }, ${fields} }]`;
const file = (fields: string): string => `${fields}\ndescriptors: [{ key: k, rate_limit: { ${DAY} } }]`;

/** Texts that follow `domain: d` in a file. */
const POLICIES: readonly string[] = [
  file('phase: monitoring'),
  file('phase: { grace_period: 2030-01-01T00:00:00Z, active: 2030-02-01T01:02:03.5Z }'),
  file('phase: { active: 1969-12-31T23:59:59Z }'),
  file('algorithm: token_bucket'),
  file('response_headers: [x-ratelimit, ratelimit]'),
  file('response_headers: []'),
  file('request_headers: [x-ratelimit, ratelimit]'),
  file('request_headers: []'),
  file('denied_response: problem+json'),
  file('denied_response: { body: "", content_type: text/html }'),
  file('denied_response: { body: no }'),
  file('decision_metadata: true'),
  file('decision_metadata: false'),
  file('on_store_failure: local'),
  file('on_store_failure: { local: 0.25 }'),
  file('on_unmatched: ignore'),
  file('enforce_percent: 0'),
  file('enforce_percent: 12.5'),
  file('lease: { for: 20ms, max: 7, exact: false }'),
  file(
    'derive: [{ entry: k, from: [a, b], rules: [{ a: x, b: "/v1/{c,d}", value: y }, { b: "", value: z }] }]',
  ),
  file(
    `derive: [{ entry: k, from: [a], sha256: { ${digest}: tenant } }, { entry: e, from: [b], sha256: {} }]`,
  ),
  'descriptors: []',
  'descriptors: [{ key: k, value: v, descriptors: [{ key: l, value: "7*" }] }, { key: "yes", value: "~" }]',
  node('value: "a*", share_threshold: true'),
  node('value_cidr: 10.0.0.0/8'),
  node('value_cidr: [10.0.0.0/8, "2001:db8::/32"]'),
  node('value_regex: ["[a-z]+", "[0-9]{1,5}"]'),
  node('phase: grace_period'),
  node('phase: { grace_period: 2030-01-01T00:00:00Z }'),
  node('shadow_mode: true'),
  node('on_unmatched: ignore'),
  node('quota_mode: true'),
  node('detailed_metric: true'),
  node('value_to_metric: true'),
  node('enforce_percent: 0'),
  node('metadata: { text: "007", number: 1.5, yes: true, none: null, list: ["true", 3, { a: b }] }'),
  ...[limit, limits].flatMap((place) => [
    place(`${DAY}, name: n`),
    place('unit: minute, requests_per_unit: 0'),
    place(`${DAY}, unit_multiplier: 3`),
    place(`${DAY}, calendar: Europe/Berlin`),
    place(`${DAY}, algorithm: fixed_window`),
    place(`${DAY}, algorithm: token_bucket, burst: 7`),
    place(`${DAY}, allow_debt: true, max_debt: 2`),
    place('token_bucket: { max_tokens: 9, tokens_per_fill: 3, fill_interval: 1h1.5s }, allow_debt: true'),
    place('token_bucket: { max_tokens: 9, fill_interval: 100ms }'),
    place('concurrency: { max: 9 }'),
    place('concurrency: { max: 9, expires_after: 1m0.5s }'),
    place('concurrency: { max: 9, retry_after: 1m5s }'),
    place(`${DAY}, hold: { amount: 3, expires_after: 1h, unknown: free }`),
    place(`${DAY}, hold: { amount: 3, pair: oldest }`),
    place(`${DAY}, hold: { from: first_call }, max_debt: 0`),
    place(`${DAY}, priorities: { by: k, keep: { low: 12.5%, high: 3 }, unknown: high }`),
    place(`${DAY}, lease: { for: 1.5s, max: 9, exact: false }`),
    place(`${DAY}, lease: { for: 50ms }`),
  ]),
  ...[limit, limits].flatMap((place) => [
    place(`${DAY}, replaces: [{ name: m }, { name: o }]`),
    place(`${DAY}, on_store_failure: deny`),
    place(`${DAY}, on_store_failure: { local: 0.125 }`),
    place(`${DAY}, response_headers: [retry-after]`),
    place(`${DAY}, response_headers: []`),
    place(`${DAY}, request_headers: [ratelimit]`),
    place(`${DAY}, request_headers: []`),
    place(`${DAY}, denied_response: problem+json`),
    place(`${DAY}, denied_response: { body: no, content_type: text/plain }`),
    place(`${DAY}, on_over: { allow: true }`),
    place(`${DAY}, on_over: { allow: true, request_headers: [{ a: b }, { c: d }], metadata: { x: [1] } }`),
  ]),
  limit('unlimited: true'),
  ...['second', 'week', 'month', 'year'].map((unit) => limit(`unit: ${unit}, requests_per_unit: 4294967295`)),
  limits(`${DAY}, name: plan, then: credits }, { ${DAY}, name: credits`),
  limits(`${DAY}, phase: monitoring`),
  limits(`${DAY}, phase: { active: 2030-01-01T00:00:00Z }`),
  ...['true', 'false'].map(
    (flag) => `descriptors: [{ key: k, shadow_mode: true, rate_limits: [{ ${DAY}, shadow_mode: ${flag} }] }]`,
  ),
  limits(`${DAY}, enforce_percent: 0`),
  'descriptors: [{ key: k, rate_limits: [{ unit: day, requests_per_unit: 5 }, { unit: hour, requests_per_unit: 2 }] }]',
];

function fromFile(text: string) {
  // As with files, keys that may be a misplaced API key are not shown.
  const showKey = (path: string): boolean => !path.includes('.rules[');
  const document = parseYaml(Buffer.from(text), new ProblemList('r'), { showKey }) as YamlValue;
  return readDocuments([{ name: 'r', document }]);
}

function fromResource(config: object) {
  const { bytes } = encodeConfig(config);
  return readUpdate([{ typeUrl: RATE_LIMIT_CONFIG_TYPE, value: bytes }], codec, {});
}

describe('a resource and a file', () => {
  test.each(POLICIES)('are equal: %s', (policy) => {
    const text = `domain: d\n${policy}\n`;
    const expected = fromFile(text);
    const found = fromResource(resourceOf(parse(text)));
    expect(expected.errors.map(formatProblem)).toEqual([]);
    expect(found.errors.map(formatProblem)).toEqual([]);
    expect(found.specs).toEqual(expected.specs);
    // Resources have no positions.
    const messages = (problems: typeof found.warnings) =>
      problems.map(({ path, message }) => ({ path, message }));
    expect(messages(found.warnings)).toEqual(messages(expected.warnings));
  });

  test('are equal with every key', () => {
    const met = new Set<string>();
    for (const policy of POLICIES) {
      resourceOf(parse(`domain: d\n${policy}`), (mapping, key) => met.add(`${mapping}.${key}`));
    }
    const sent = mappings.flatMap((name) =>
      Object.entries(fieldsOf(name)).flatMap(([key, { xds }]) =>
        xds === 'file_only' ? [] : [`${name}.${key}`],
      ),
    );
    expect(sent.filter((key) => !met.has(key))).toEqual([]);
  });
});

describe('a resource', () => {
  const load = (config: object) => fromResource({ name: 'r', domain: 'd', ...config });
  const day = { unit: 'DAY', requests_per_unit: 5 };
  const seconds = (count: number) => ({ seconds: count });
  const rule = (rateLimit: object) => ({ descriptors: [{ key: 'k', rate_limit: rateLimit }] });
  const bucket = (fields: object) => rule({ token_bucket: fields });
  const filled = (fields: object) => bucket({ max_tokens: 1, ...fields });

  test.each([
    [
      { phase: 'monitoring', phase_schedule: { active: seconds(0) } },
      'phase: { active: 1970-01-01T00:00:00Z }',
    ],
    [
      { on_store_failure: 'local', on_store_failure_share: { local: 0.5 } },
      'on_store_failure: { local: 0.5 }',
    ],
    [
      rule({ ...day, token_bucket: { max_tokens: 9, fill_interval: { nanos: 1_500_000 } } }),
      limit('token_bucket: { max_tokens: 9, fill_interval: 1500us }'),
    ],
    [
      { descriptors: [{ key: 'k', value: 'no such', value_cidr: ['10.0.0.0/8'] }] },
      'descriptors: [{ key: k, value_cidr: 10.0.0.0/8 }]',
    ],
    [
      { descriptors: [{ key: 'k', rate_limit: day, rate_limits: [{ ...day, requests_per_unit: 7 }] }] },
      'descriptors: [{ key: k, rate_limits: [{ unit: day, requests_per_unit: 7 }] }]',
    ],
  ])(
    "%j has weir's field, and leaves the other field to servers that do not know weir's",
    (config, policy) => {
      const { errors, specs } = load(config);
      expect(errors.map(formatProblem)).toEqual([]);
      expect(specs).toEqual(fromFile(`domain: d\n${policy}\n`).specs);
    },
  );

  test.each([
    [{ phase: 'later' }, 'phase: later'],
    [{ descriptors: [{ key: 'k', phase: 'actve' }] }, 'descriptors: [{ key: k, phase: actve }]'],
    [{ phase_schedule: {} }, 'phase: {}'],
    // Invalid times and numbers are written as in a file.
    [{ phase_schedule: { active: seconds(1e12) } }, 'phase: { active: 1000000000000s0ns }'],
    [{ phase_schedule: { active: { seconds: 0, nanos: -1 } } }, 'phase: { active: 0s-1ns }'],
    [{ enforce_percent: 101 }, 'enforce_percent: 101'],
    [{ enforce_percent: Number.NaN }, 'enforce_percent: NaN'],
    [{ algorithm: 'gcra' }, 'algorithm: gcra'],
    [{ denied_response: {} }, 'denied_response: ""'],
    [{ denied_response: { preset: 'html' } }, 'denied_response: html'],
    [{ response_headers: ['', ''] }, 'response_headers: ["", ""]'],
    [{ derive: [{ entry: 'e', from: ['a'] }] }, 'derive: [{ entry: e, from: [a] }]'],
    [
      { derive: [{ entry: 'e', from: ['a'], sha256: { tenants: { key: 't' } } }] },
      'derive: [{ entry: e, from: [a], sha256: { key: t } }]',
    ],
    [
      { derive: [{ entry: 'e', from: ['a'], rules: [{ conditions: { s3cret: 'x' }, value: 'v' }] }] },
      'derive: [{ entry: e, from: [a], rules: [{ s3cret: x, value: v }] }]',
    ],
    // A condition named "value" must not be taken for the value of the rule.
    [
      { derive: [{ entry: 'e', from: ['a'], rules: [{ conditions: { value: 'x' }, value: 'v' }] }] },
      'derive: [{ entry: e, from: [a], rules: [{ conditions.value: x, value: v }] }]',
    ],
    [
      { descriptors: [{ key: 'k', rate_limits: [{ ...day, unlimited: true }] }] },
      limits(`${DAY}, unlimited: true`),
    ],
    [rule({ ...day, enforce_percent: 5 }), limit(`${DAY}, enforce_percent: 5`)],
    [
      rule({ token_bucket: { max_tokens: 1, fill_interval: seconds(1) }, burst: 2 }),
      limit('token_bucket: { max_tokens: 1, fill_interval: 1s }, burst: 2'),
    ],
    [rule({ unit: 9, requests_per_unit: 1 }), limit('unit: "9", requests_per_unit: 1')],
    [rule({ unit: -1, requests_per_unit: 1 }), limit('unit: "-1", requests_per_unit: 1')],
    [rule({ requests_per_unit: 1 }), limit('requests_per_unit: 1')],
    [rule({}), limit('')],
    [rule({ unlimited: true, unit: 'DAY' }), limit('unlimited: true, unit: day')],
    [rule({ ...day, replaces: [{}] }), limit(`${DAY}, replaces: [{ name: "" }]`)],
    [bucket({}), limit('token_bucket: { max_tokens: 0 }')],
    [filled({}), limit('token_bucket: { max_tokens: 1 }')],
    [
      filled({ tokens_per_fill: { value: 0 }, fill_interval: seconds(1) }),
      limit('token_bucket: { max_tokens: 1, tokens_per_fill: 0, fill_interval: 1s }'),
    ],
    [filled({ fill_interval: seconds(-1) }), limit('token_bucket: { max_tokens: 1, fill_interval: -1s }')],
    [filled({ fill_interval: { nanos: 1 } }), limit('token_bucket: { max_tokens: 1, fill_interval: 1ns }')],
  ])('%j is refused with the message for a file', (config, policy) => {
    const words = (problems: readonly ConfigProblem[]) =>
      problems.map(({ path, message }) => `${path}: ${message}`).sort();
    const refused = words(fromFile(`domain: d\n${policy}\n`).errors);
    expect(refused.length).toBeGreaterThan(0);
    expect(words(load(config).errors)).toEqual(refused);
  });

  test.each([[[]], [[8, 4, 16, 5]], [[255, 255]]])(
    'with the removed field candidate is read with a warning, whatever bytes %j it has',
    (bytes) => {
      const { specs, errors, warnings } = load({
        descriptors: [{ key: 'k', rate_limit: day, candidate: Buffer.from(bytes) }],
      });
      expect(errors).toEqual([]);
      expect(specs).toEqual(load(rule(day)).specs);
      expect(warnings.map(({ path, message }) => `${path}: ${message}`)).toEqual([
        expect.stringMatching(/^descriptors\[0\]\.candidate: "candidate" was removed and is ignored; /),
      ]);
    },
  );

  test('with the removed field learned is refused, even next to amount', () => {
    for (const hold of [{ amount: 2, learned: Buffer.from([16, 5]) }, { learned: Buffer.alloc(0) }]) {
      const { errors, refusesStart } = load(rule({ ...day, hold }));
      expect(refusesStart).toBe(true);
      expect(errors[0]).toMatchObject({
        path: 'descriptors[0].rate_limit.hold.learned',
        message: expect.stringMatching(/^"learned" was removed; /),
      });
    }
  });
});
