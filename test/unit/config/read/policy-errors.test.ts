import { describe, expect, test } from '@jest/globals';
import type { Field } from '../../../../src/config/read/field.js';
import { keysOf, POLICY_FIELDS } from '../../../../src/config/read/policy-fields.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { MAX_ALIAS_VALUES, MAX_FILE_BYTES } from '../../../../src/config/yaml/yaml-value.js';
import { cases } from '../../../support/assert/cases.js';
import { parse } from '../../../support/policy/policies.js';

function errorsOf(text: string, files: Readonly<Record<string, string>> = {}): string[] {
  const { policy, problems, tableFiles } = parse(text, files);
  const errors = [problems, ...tableFiles].flatMap((list) => list.errors.map(formatProblem));
  // There is a policy if and only if there are no errors.
  expect(policy === undefined).toBe(errors.length > 0);
  return errors;
}

function warningsOf(text: string): string[] {
  const { policy, problems } = parse(text);
  expect(problems.errors).toEqual([]);
  expect(policy).toBeDefined();
  return problems.warnings.map(formatProblem);
}

/** Names each case by the beginning of its text and its message. */
const named = (cases: readonly (readonly [text: string, said: string])[]) =>
  cases.map(([text, said]) => [`${JSON.stringify(text.slice(0, 60))}: ${said}`, text, said] as const);

/** Returns a policy with a `rate_limit` in one line, on line 4. */
const limit = (fields: string): string => `domain: d\ndescriptors:\n- key: k\n  rate_limit: ${fields}\n`;
const bucket = (fields: string): string => limit(`{ token_bucket: { ${fields} } }`);

// reference-rejects.test.ts tests what envoyproxy/ratelimit also rejects, and likely-mistakes.test.ts tests
// misspellings.
describe('the file', () => {
  test.each(
    named([
      ...cases<[string, string]>`
        # nothing\n => policy.yaml: the file is empty; add a policy, or remove the file
        ---\n => policy.yaml: the file is empty; add a policy, or remove the file
        just text
          policy.yaml:1:1: a policy file must be a mapping, not a single value; begin it with "domain: <name>"
        domain: d\0 => policy.yaml: the file is binary; a policy must be YAML text
        #${' '.repeat(MAX_FILE_BYTES)}
          policy.yaml: the file has 4194305 bytes, more than the maximum of 4194304; split it into several files
        ${'['.repeat(100_000)} => policy.yaml: the file is nested more than 200 levels deep; flatten the file
        // The parser nests these lines and overflows the stack at the end of the document.
        ${'* a: b\n'.repeat(8000)}---
          policy.yaml: the file is nested more than 200 levels deep; flatten the file
        domain: d\n<<: x\n
          policy.yaml:2:5: <<: a merge key (<<) requires a mapping or a list of mappings; use an alias for a mapping,
            or remove the key
      `,
      ['', 'policy.yaml: the file is empty; add a policy, or remove the file'],
    ]),
  )('%s', (_name, text, error) => {
    expect(errorsOf(text)).toEqual([error]);
  });

  test('invalid aliases and merge keys neither hide nor cause other errors', () => {
    const text = `domain: *gone
on_store_failure: never
descriptors:
- key: a
  key: b
  rate_limit: { unit: eon, requests_per_unit: 1 }
- *gone
- key: c
  <<: x
  rate_limit: { <<: *gone, unit: hour, requests_per_unit: -1 }
- &r { key: d, key: e, rate_limt: 1 }
- { key: f, descriptors: [*r] }
`;
    expect(errorsOf(text).map((error) => error.slice('policy.yaml:'.length).split(';')[0])).toEqual([
      '1:9: domain: "*gone" without quotes is an alias, which has no anchor before it',
      '2:19: on_store_failure: "never" is not one of error, allow, deny, local',
      expect.stringMatching(/^6:23: descriptors\[0\]\.rate_limit\.unit: "eon"/),
      '7:3: descriptors[1]: "*gone" without quotes is an alias, which has no anchor before it',
      '9:7: descriptors[2].<<: a merge key (<<) requires a mapping or a list of mappings',
      '10:21: descriptors[2].rate_limit.<<: "*gone" without quotes is an alias, which has no anchor ' +
        'before it',
      expect.stringMatching(/^10:59: descriptors\[2\]\.rate_limit\.requests_per_unit: /),
      '11:24: descriptors[3].rate_limt: unknown key "rate_limt"',
      '11:24: descriptors[4].descriptors[0].rate_limt: unknown key "rate_limt"',
    ]);
    expect(parse(text).policy).toBeUndefined();
  });

  const TOO_DEEP = 'the file is nested more than 200 levels deep; flatten the file';

  test.each(['[', '[ ', '{a: ', '- ', '? ', '- [', '[\n'])(
    'nesting with %j that overflows the stack of the parser is refused, and does not crash',
    (part) => {
      expect(errorsOf(part.repeat(20_000))).toEqual([`policy.yaml: ${TOO_DEEP}`]);
    },
  );

  test.each([
    ['[', ']'],
    ['{a: ', '}'],
    ['- ', ''],
    ['? ', ''],
  ])('300 levels of %j are refused', (open, close) => {
    const [error, ...others] = errorsOf(`domain: d\nx:\n  ${open.repeat(300)}${close.repeat(300)}`);
    expect(error).toMatch(/^policy\.yaml:3:\d+: /);
    expect(error).toContain(TOO_DEEP);
    expect(others).toEqual([]);
  });

  test('nesting by indentation is refused, also with aliases', () => {
    let text = 'domain: d\n';
    for (let i = 0; i < 300; i++) text += `${' '.repeat(i)}a:\n`;
    expect(errorsOf(text)).toEqual([
      expect.stringMatching(/^policy\.yaml:202:201: a\.a\..*: the file is nested/),
    ]);
    const deep = (name: string, inner: string): string =>
      `${name}: &${name} ${'['.repeat(90)}${inner}${']'.repeat(90)}\n`;
    expect(errorsOf(deep('x', '1') + deep('y', '*x') + deep('z', '*y'))).toEqual([
      expect.stringMatching(
        /^policy.yaml:1:\d+: z\[0\].*: the file is nested more than 200 levels deep; flatten the file$/,
      ),
    ]);
  });

  test('aliases that expand without end are refused', () => {
    const lines = ['domain: d', 'x0: &x0 [a, b, c, d, e, f, g, h]'];
    for (let i = 1; i < 9; i++) lines.push(`x${i}: &x${i} [${`*x${i - 1}, `.repeat(8)}]`);
    expect(errorsOf(lines.join('\n'))).toEqual([
      expect.stringContaining(`aliases expand to more than ${MAX_ALIAS_VALUES} values`),
    ]);
  });

  test('all errors of a file are reported at once', () => {
    const text = `phase: later
descriptors:
  - value: v
    rate_limit: { unit: fortnight, requests_per_unit: -1 }
  - key: a
    rate_limt: {}
`;
    // Errors are in file order, so that an editor can step through them.
    expect(errorsOf(text)).toEqual([
      'policy.yaml:1:1: domain: "domain" is missing or empty; write the domain that Envoy sends, as in ' +
        'domain: shop',
      'policy.yaml:1:8: phase: "later" is not one of monitoring, grace_period, active; write active to ' +
        'deny requests, or monitoring to only count them',
      'policy.yaml:3:5: descriptors[0].key: "key" is missing; write the key of the entry that this descriptor matches',
      'policy.yaml:4:25: descriptors[0].rate_limit.unit: "fortnight" is not a valid unit; write one of ' +
        'second, minute, hour, day, week, month, year',
      'policy.yaml:4:55: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is -1; write ' +
        'a whole number from 0 to 4294967295, or replace the key with unlimited: true for no limit',
      'policy.yaml:6:5: descriptors[1].rate_limt: unknown key "rate_limt"; did you mean "rate_limit"?',
    ]);
  });
});

describe('domain and settings of the file', () => {
  test.each(
    named(cases<[string, string]>`
      domain: [d]\n => 1:9: domain: "domain" must be a string, not a list; write a single string
      domain: d\nphase: Active\n
        2:8: phase: "Active" is not one of monitoring, grace_period, active; did you mean "active"?
      domain: d\nphase: [active]\n
        2:8: phase: "phase" must not be a list; write one of monitoring, grace_period, active, or a mapping with the
          times of grace_period and active
      domain: d\nphase: { active: 2024-05-15 }\n
        2:18: phase.active: "2024-05-15" is not an RFC 3339 time; write 2024-05-15T00:00:00Z
      domain: d\nphase: { active: 2024-05-15 10:00 }\n
        2:18: phase.active: "2024-05-15 10:00" is not an RFC 3339 time; write a day and a time, such as
          2030-01-31T12:00:00Z
      domain: d\nphase:\n  grace_period: 2024-05-15T00:00:00Z\n  active: 2024-05-14T23:59:59Z\n
        4:11: phase.active: "active" is earlier than "grace_period"; the grace period comes first, so write a later
          time
      domain: d\nphase: { monitoring: 2024-05-15T00:00:00Z, active: 2024-05-15T00:00:00Z }\n
        2:10: phase.monitoring: unknown key "monitoring"; the keys allowed here are grace_period, active
      domain: d\nresponse_headers: x-ratelimit\n
        2:19: response_headers: "response_headers" must be a list of header families; begin each item with "- "
      domain: d\nresponse_headers: [x-rate]\n
        2:20: response_headers[0]: "x-rate" is not valid in "response_headers"; write one of x-ratelimit,
          retry-after, ratelimit-draft-03, ratelimit
      domain: d\non_unmatched: ignored\n
        2:15: on_unmatched: "ignored" is not one of warn, ignore; did you mean "ignore"?
      domain: d\non_store_failure: { local: 0 }\n
        2:28: on_store_failure.local: "local" is 0; write a number from 0.000001 to 1, the share of the limit that
          each replica enforces, such as 0.25 for a quarter
      domain: d\non_store_failure: { local: "25%" }\n
        2:28: on_store_failure.local: "local" is the string "25%"; write a number from 0.000001 to 1, the share of
          the limit that each replica enforces, such as 0.25 for a quarter, without quotes
      domain: d\non_store_failure: { local: 0.5, deny: 0.5 }\n
        2:33: on_store_failure.deny: unknown key "deny"; the keys allowed here are local
      domain: d\non_store_failure: {}\n
        2:19: on_store_failure: "local" is missing; write the share of the limit that each replica enforces, such as
          0.25 for a quarter
      domain: d\non_store_failure: [local]\n
        2:19: on_store_failure: "on_store_failure" must not be a list; write one of error, allow, deny, local, or a
          local share, as in { local: 0.25 }
    `),
  )('%s', (_name, text, error) => {
    expect(errorsOf(text)).toEqual([`policy.yaml:${error}`]);
  });
});

describe('descriptors', () => {
  const node = (fields: string): string => `domain: d\ndescriptors:\n- { ${fields} }\n`;
  test.each([
    ...cases<[string, string]>`
      key: a, value_to_metric: []
        3:30: descriptors[0].value_to_metric: "value_to_metric" is a list; write true or false
      key: a, token_bucket: {}
        3:13: descriptors[0].token_bucket: unknown key "token_bucket"; it belongs in "rate_limit"
      key: a, limit: {}
        3:13: descriptors[0].limit: unknown key "limit"; the keys allowed here are ${keysOf('descriptor').join(', ')}
      key: a, decision_metadata: true
        3:13: descriptors[0].decision_metadata: unknown key "decision_metadata"; it belongs at the top of the file
      key: a, on_store_failure: deny
        3:13: descriptors[0].on_store_failure: unknown key "on_store_failure"; it belongs at the top of the file or in
          "rate_limit"
      key: a, value_regex: [~]
        3:27: descriptors[0].value_regex[0]: each item of "value_regex" must be a non-empty string
      key: a, value_cidr: "1\\n\\e[2J"
        3:25: descriptors[0].value_cidr: "1\\u000a\\u001b[2J" is not a valid CIDR block; write a block such as
          10.0.0.0/8 or 2001:db8::/32
    `,
    [
      'key: a, rate_limits: ',
      '3:27: descriptors[0].rate_limits: "rate_limits" is empty; write a value after it, or remove the key',
    ],
  ])('%s', (fields, error) => {
    expect(errorsOf(node(fields))).toEqual([`policy.yaml:${error}`]);
  });

  test('duplicates on one level', () => {
    const text = `domain: d
descriptors:
  - key: a
    descriptors:
      - key: b
        value: x*
      - key: b
        value: "x*"
      - { key: b, value: "" }
      - key: b
  - key: a
    value: 007
  - key: a
    value: "007"
`;
    expect(errorsOf(text)).toEqual([
      'policy.yaml:8:16: descriptors[0].descriptors[1]: "b=x*" is defined twice at this level, first in ' +
        'policy.yaml:6:16; merge the two descriptors, or remove one of them',
      'policy.yaml:10:14: descriptors[0].descriptors[3]: "b" is defined twice at this level, first in ' +
        'policy.yaml:9:16; merge the two descriptors, or remove one of them',
      'policy.yaml:14:12: descriptors[2]: "a=007" is defined twice at this level, first in ' +
        'policy.yaml:12:12; merge the two descriptors, or remove one of them',
    ]);
  });

  test('positions and paths on deep levels, also with aliases', () => {
    const text = `domain: d
descriptors:
  - key: a
    descriptors: &below
      - key: b
        rate_limit: { unit: lightyear, requests_per_unit: 1 }
  - key: c
    descriptors: *below
`;
    const sentence =
      '"lightyear" is not a valid unit; write one of second, minute, hour, day, week, month, year';
    expect(errorsOf(text).map((error) => error.replace(/; did you mean.*/, ''))).toEqual([
      `policy.yaml:6:29: descriptors[0].descriptors[0].rate_limit.unit: ${sentence}`,
      `policy.yaml:6:29: descriptors[1].descriptors[0].rate_limit.unit: ${sentence}`,
    ]);
  });
});

describe('rate_limit', () => {
  test.each(cases`
    { unit: "", requests_per_unit: 5 }
      4:23: descriptors[0].rate_limit.unit: "" is not a valid unit; write one of second, minute, hour, day, week,
        month, year
    { unlimited: true, token_bucket: {} }
      4:48: descriptors[0].rate_limit.token_bucket: an unlimited rule cannot have "token_bucket"; remove
        "token_bucket" or "unlimited"
    { unlimited: 1 } => 4:28: descriptors[0].rate_limit.unlimited: "unlimited" is 1; write true or false
    { unit: second, requests_per_unit: 1, token_bucket: { max_tokens: 1, fill_interval: 1s } }
      4:23: descriptors[0].rate_limit.unit: "unit" cannot be combined with "token_bucket"; keep one of the two|4:50:
        descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" cannot be combined with "token_bucket";
        keep one of the two
  `)('%s', (fields, errors) => {
    const found = errorsOf(limit(fields)).map((error) =>
      error.includes('"" is not a valid unit') ? error.split('; did')[0] : error,
    );
    expect(found).toEqual(errors.split('|').map((error) => `policy.yaml:${error}`));
  });
});

describe('token_bucket', () => {
  const path = 'descriptors[0].rate_limit.token_bucket';
  test.each([
    ...cases<[string, string]>`
      max_tokens: 0, fill_interval: 1s
        4:45: ${path}.max_tokens: "max_tokens" is 0; write a whole number from 1 to 4294967295, or write unit and
          requests_per_unit: 0 instead of token_bucket to deny every request
      max_tokens: -1, fill_interval: 1s
        4:45: ${path}.max_tokens: "max_tokens" is -1; write a whole number from 1 to 4294967295, or write unit and
          requests_per_unit: 0 instead of token_bucket to deny every request
      max_tokens: 4294967296, fill_interval: 1s
        4:45: ${path}.max_tokens: "max_tokens" is 4294967296; write a whole number from 1 to 4294967295
      max_tokens: 1, tokens_per_fill: 0, fill_interval: 1s
        4:65: ${path}.tokens_per_fill: "tokens_per_fill" is 0; write a whole number from 1 to 4294967295
      max_tokens: 1, fill_interval: 1
        4:63: ${path}.fill_interval: "1" is not a valid duration; write a number and a unit, such as 150ms, 1s or 1h30m
      max_tokens: 1, fill_interval: 999us
        4:63: ${path}.fill_interval: "fill_interval" is 999us; write a duration from 1ms to 876000h, or multiply it
          and tokens_per_fill by the same number
      max_tokens: 1, fill_interval: -1s
        4:63: ${path}.fill_interval: "fill_interval" is -1s; write a duration from 1ms to 876000h, or multiply it and
          tokens_per_fill by the same number
      max_tokens: 1, fill_interval: 1000001ns
        4:63: ${path}.fill_interval: "fill_interval" is 1000001ns; write a whole number of microseconds
      max_tokens: 1, fill_interval: 876001h
        4:63: ${path}.fill_interval: "fill_interval" is 876001h; write a duration from 1ms to 876000h
      max_tokens: 876001, fill_interval: 1h
        4:31: ${path}: an empty bucket would take more than 100 years to fill; lower max_tokens or fill_interval, or
          raise tokens_per_fill
      max_tokens: 1, fill_interval: 1s, refill: 1
        4:67: ${path}.refill: unknown key "refill"; the keys allowed here are max_tokens, tokens_per_fill,
          fill_interval
    `,
    [
      '',
      `4:31: ${path}: "max_tokens" is missing; write the capacity of the bucket, such as 100|4:31: ` +
        `${path}: "fill_interval" is missing; write the interval at which tokens_per_fill tokens are ` +
        'added, such as 1s',
    ],
  ])('%s', (fields, errors) => {
    expect(errorsOf(bucket(fields))).toEqual(errors.split('|').map((error) => `policy.yaml:${error}`));
  });

  test.each([
    'max_tokens: 4294967295, tokens_per_fill: 4294967295, fill_interval: 1ms',
    'max_tokens: 876000, fill_interval: 1h',
    'max_tokens: 1, tokens_per_fill: 3, fill_interval: 876000h',
  ])('%s is valid', (fields) => {
    expect(errorsOf(bucket(fields))).toEqual([]);
  });
});

/** Keys without which another limit, or none, may apply. */
const NEVER_EMPTY = new Set(
  Object.values(POLICY_FIELDS).flatMap((fields) =>
    Object.entries<Field>(fields).flatMap(([key, { empty }]) => (empty === 'warning' ? [key] : [])),
  ),
);

describe('warnings', () => {
  test('for empty keys of weir, at any position', () => {
    const places = [...NEVER_EMPTY].map((key) => {
      const text = keysOf('file').includes(key)
        ? `domain: d\n${key}:\n`
        : keysOf('descriptor').includes(key)
          ? `domain: d\ndescriptors: [{ key: a, ${key}: }]\n`
          : keysOf('rate_limit').includes(key)
            ? limit(`{ unit: day, requests_per_unit: 1, ${key}: }`)
            : `domain: d\ndescriptors: [{ key: a, rate_limits: [{ unit: day, requests_per_unit: 1, ${key}: }] }]\n`;
      return [key, warningsOf(text), errorsOf(text)];
    });
    expect(places).toEqual(
      [...NEVER_EMPTY].map((key) => [
        key,
        [expect.stringContaining(`"${key}" is empty and is ignored; write a value after it`)],
        [],
      ]),
    );
  });

  test('for a repeated key, whose last value applies', () => {
    const text = 'domain: d\ndescriptors:\n- key: a\n  key: b\ndomain: e\n';
    expect(errorsOf(text)).toEqual([]);
    expect(warningsOf(text)).toEqual([
      'policy.yaml:4:3: descriptors[0].key: the key "key" occurs twice in one mapping, first on line 3, ' +
        'and only the last one counts; remove one of the two',
      'policy.yaml:5:1: domain: the key "domain" occurs twice in one mapping, first on line 1, and only ' +
        'the last one counts; remove one of the two',
    ]);
    const { policy } = parse(text);
    expect([policy?.domain, [...(policy?.root.children() ?? [])].map(({ label }) => label)]).toEqual([
      'e',
      ['b'],
    ]);
  });

  test.each(
    named(cases`
      domain: d\ndescriptors: [{ key: a, shadow_mode: true }]\n
        2:38: descriptors[0].shadow_mode: "shadow_mode" has no effect without a limit in the same descriptor; add
          "rate_limit" or "rate_limits", or remove "shadow_mode"
      domain: d\ndescriptors: [{ key: a, detailed_metric: true }]\n
        2:42: descriptors[0].detailed_metric: "detailed_metric" has no effect without a limit in the same
          descriptor; add "rate_limit" or "rate_limits", or remove "detailed_metric"
      domain: d\ndescriptors: [{ key: a, metadata: { any: [1, { x: y }] } }]\n
        2:35: descriptors[0].metadata: "metadata" has no effect without a limit in the same descriptor; add
          "rate_limit" or "rate_limits", or remove "metadata"
    `),
  )('%s', (_name, text, warning) => {
    expect(warningsOf(text)).toEqual([`policy.yaml:${warning}`]);
  });
});
