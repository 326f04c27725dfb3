import { describe, expect, test } from '@jest/globals';
import { createDiscoveryCodec, RATE_LIMIT_CONFIG_TYPE } from '../../../../src/config/xds/discovery.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { describeRate } from '../../../../src/policy/describe.js';
import { loadUpdate } from '../../../support/policy/loads.js';
import { encodeConfig } from '../../../support/xds/xds-server.js';

const codec = createDiscoveryCodec();

function load(...configs: object[]) {
  const resources = configs.map((config) => ({
    typeUrl: RATE_LIMIT_CONFIG_TYPE,
    value: encodeConfig(config).bytes,
  }));
  return loadUpdate(resources, codec, { mergeDomains: false });
}

/** Loads one resource whose descriptor `k` has this rate_limit. */
function loadRule(rateLimit: object, more: object = {}) {
  const { policySet, errors, warnings } = load({
    name: 'r',
    domain: 'd',
    descriptors: [{ key: 'k', rate_limit: rateLimit, ...more }],
  });
  return {
    errors: errors.map(formatProblem),
    warnings: warnings.map(formatProblem),
    rule: policySet.domains.get('d')?.rules[0],
  };
}

describe('a resource', () => {
  test.each([
    [{ unit: 'SECOND', requests_per_unit: 5 }, 'window: 5 per second'],
    [{ unit: 'WEEK', requests_per_unit: 5 }, 'window: 5 per week'],
    [{ unit: 'MONTH', requests_per_unit: 5 }, 'window: 5 per month'],
    [{ unit: 'YEAR', requests_per_unit: 4294967295 }, 'window: 4294967295 per year'],
    [{ unit: 'MINUTE' }, 'window: 0 per minute'],
    [{ unlimited: true }, 'unlimited'],
    [
      { token_bucket: { max_tokens: 9, fill_interval: { seconds: 2 } } },
      'token bucket: 9 tokens, 1 every 2s',
    ],
    [
      { token_bucket: { max_tokens: 9, tokens_per_fill: { value: 3 }, fill_interval: { nanos: 1_500_000 } } },
      'token bucket: 9 tokens, 3 every 1500us',
    ],
    [
      { unit: 'DAY', requests_per_unit: 5, token_bucket: { max_tokens: 9, fill_interval: { seconds: 1 } } },
      'token bucket: 9 tokens, 1 every 1s',
    ],
  ])('%j is %s', (rateLimit, rate) => {
    const { rule, errors, warnings } = loadRule(rateLimit);
    expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
    expect(describeRate(rule?.rate)).toBe(rate);
  });

  test.each([
    [{ unit: 9, requests_per_unit: 1 }, 'r: descriptors[0].rate_limit.unit: "9" is no unit'],
    [{ unit: -1, requests_per_unit: 1 }, 'r: descriptors[0].rate_limit.unit: "-1" is no unit'],
    [{ requests_per_unit: 1 }, 'r: descriptors[0].rate_limit: "unit" is missing'],
    [{}, 'r: descriptors[0].rate_limit: "rate_limit" holds no limit'],
    [{ unlimited: true, unit: 'DAY' }, 'r: descriptors[0].rate_limit.unit: an unlimited rule has no unit'],
    [{ unit: 'DAY', replaces: [{}] }, 'r: descriptors[0].rate_limit.replaces[0].name: '],
    [{ token_bucket: {} }, 'r: descriptors[0].rate_limit.token_bucket.max_tokens: a bucket holds at least 1'],
    [
      { token_bucket: { max_tokens: 1 } },
      'r: descriptors[0].rate_limit.token_bucket: "fill_interval" is missing',
    ],
    [
      { token_bucket: { max_tokens: 1, tokens_per_fill: { value: 0 }, fill_interval: { seconds: 1 } } },
      'r: descriptors[0].rate_limit.token_bucket.tokens_per_fill: ',
    ],
    [
      { token_bucket: { max_tokens: 1, fill_interval: { seconds: -1 } } },
      'r: descriptors[0].rate_limit.token_bucket.fill_interval: the interval is shorter than 1ms',
    ],
    [
      { token_bucket: { max_tokens: 1, fill_interval: { nanos: 1 } } },
      'r: descriptors[0].rate_limit.token_bucket.fill_interval: the interval is shorter than 1ms',
    ],
  ])('%j is an error', (rateLimit, start) => {
    const { rule, errors } = loadRule(rateLimit);
    expect(errors.map((error) => error.slice(0, start.length))).toContain(start);
    expect(rule).toBeUndefined();
  });

  test('all that a descriptor can say arrives', () => {
    const { rule, errors } = loadRule(
      { unit: 'HOUR', requests_per_unit: 2, name: 'n', replaces: [{ name: 'm' }] },
      {
        shadow_mode: true,
        quota_mode: true,
        metadata: {
          fields: {
            text: { stringValue: '007' },
            number: { numberValue: 1.5 },
            yes: { boolValue: true },
            list: { listValue: { values: [{ stringValue: 'true' }, { numberValue: 3 }] } },
            nested: { structValue: { fields: { a: { stringValue: 'b' } } } },
          },
        },
      },
    );
    expect(errors).toEqual([]);
    expect(rule).toMatchObject({
      name: 'n',
      replaces: ['m'],
      shadowMode: true,
      quotaMode: true,
      metadata: { text: '007', number: 1.5, yes: true, list: ['true', 3], nested: { a: 'b' } },
    });
  });

  test('texts stay texts, whatever they look like in YAML', () => {
    const { policySet, errors } = load({
      name: 'r',
      domain: 'null',
      descriptors: [{ key: 'yes', value: '~', rate_limit: { unit: 'DAY', requests_per_unit: 1 } }],
    });
    expect(errors).toEqual([]);
    expect(policySet.domains.get('null')?.match([{ key: 'yes', value: '~' }]).rules[0]).toBeDefined();
  });

  test('a bad phase and a bad header family are errors', () => {
    const { errors } = load({
      name: 'r',
      domain: 'd',
      phase: 'later',
      response_headers: ['x-rate'],
      descriptors: [{ key: 'k', phase: 'actve' }],
    });
    expect(errors.map(formatProblem)).toEqual([
      expect.stringMatching(/^r: phase: "later" is not one of /),
      expect.stringMatching(/^r: response_headers\[0\]: "x-rate" is no header family/),
      expect.stringMatching(/^r: descriptors\[0\]\.phase: "actve" is not one of .*did you mean "active"/),
    ]);
  });
});

describe('an update', () => {
  const config = (name: string, domain: string) => ({ name, domain, descriptors: [] });

  test('without resources is a configuration without domains', () => {
    expect(load()).toMatchObject({ errors: [], policySet: { domains: new Map() } });
  });

  test('is the same in any order', () => {
    const [a, b] = [config('a', 'one'), config('b', 'two')];
    expect(load(a, b).policySet.version).toBe(load(b, a).policySet.version);
    expect(load(a, b).policySet.version).not.toBe(load(a).policySet.version);
  });

  test('with one domain twice is bad', () => {
    expect(load(config('a', 'one'), config('b', 'one')).errors.length).toBeGreaterThan(0);
  });

  test('may hold two resources of one name, as the domain counts', () => {
    const { errors, policySet } = load(config('a', 'one'), config('a', 'two'));
    expect(errors).toEqual([]);
    expect([...policySet.domains.keys()].sort()).toEqual(['one', 'two']);
  });

  test('names a resource without a name by its place', () => {
    const { errors } = load(config('a', 'one'), config('', ''));
    expect(errors.map(formatProblem)).toEqual([expect.stringMatching(/^resource 2: domain: /)]);
  });

  test('whose names are long is rejected in few words, which go back to the management server', () => {
    const long = 'n'.repeat(100_000);
    const { errors } = load(config(`${long}a`, long), config(`${long}b`, long), config(long, ''));
    expect(errors.length).toBeGreaterThanOrEqual(2);
    for (const error of errors) expect(formatProblem(error).length).toBeLessThan(1000);
  });

  test('holds only what was asked for', () => {
    const value = encodeConfig(config('a', 'one')).bytes;
    const other = { typeUrl: 'type.googleapis.com/envoy.config.cluster.v3.Cluster', value };
    const { errors } = loadUpdate([other], codec, { mergeDomains: false });
    expect(errors.map(formatProblem)).toEqual([
      expect.stringMatching(/^resource 1: its type is ".*Cluster"/),
    ]);
  });

  test.each([
    ['cut off', encodeConfig(config('a', 'one')).bytes.subarray(0, -1)],
    ['nested without end', nested(20_000)],
  ])('whose bytes are %s is an error, not a crash', (_, value) => {
    const resource = { typeUrl: RATE_LIMIT_CONFIG_TYPE, value };
    const { errors } = loadUpdate([resource], codec, { mergeDomains: false });
    expect(errors.map(formatProblem)).toEqual([expect.stringMatching(/^resource 1: its bytes are no /)]);
  });
});

/** A descriptor in a descriptor in …, as bytes. */
function nested(depth: number): Buffer {
  const varint = (value: number): number[] =>
    value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(Math.floor(value / 0x80))];
  const heads: number[][] = [];
  let length = 0;
  for (let level = 0; level < depth; level++) {
    // Field 3 of RateLimitConfig at the top, field 4 of RateLimitDescriptor below.
    const head = [level === depth - 1 ? 0x1a : 0x22, ...varint(length)];
    heads.push(head);
    length += head.length;
  }
  return Buffer.from(heads.reverse().flat());
}
