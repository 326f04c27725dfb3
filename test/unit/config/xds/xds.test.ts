import { describe, expect, test } from '@jest/globals';
import { createDiscoveryCodec, RATE_LIMIT_CONFIG_TYPE } from '../../../../src/config/xds/discovery.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
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

describe('an update', () => {
  const config = (name: string, domain: string) => ({ name, domain, descriptors: [] });

  test('without resources is a configuration without domains', () => {
    expect(load()).toMatchObject({ errors: [], policySet: { domains: new Map() } });
  });

  test('has the same result in any order', () => {
    const [a, b] = [config('a', 'one'), config('b', 'two')];
    expect(load(a, b).policySet.version).toBe(load(b, a).policySet.version);
    expect(load(a, b).policySet.version).not.toBe(load(a).policySet.version);
  });

  test('with a repeated domain is invalid', () => {
    expect(load(config('a', 'one'), config('b', 'one')).errors.length).toBeGreaterThan(0);
  });

  test('may contain two resources with one name, because only the domain counts', () => {
    const { errors, policySet } = load(config('a', 'one'), config('a', 'two'));
    expect(errors).toEqual([]);
    expect([...policySet.domains.keys()].sort()).toEqual(['one', 'two']);
  });

  test('identifies a resource without a name by its index', () => {
    const { errors } = load(config('a', 'one'), config('', ''));
    expect(errors.map(formatProblem)).toEqual([expect.stringMatching(/^resource 2: domain: /)]);
  });

  test('with long names is rejected with a short text for the management server', () => {
    const long = 'n'.repeat(100_000);
    const { errors } = load(config(`${long}a`, long), config(`${long}b`, long), config(long, ''));
    expect(errors.length).toBeGreaterThanOrEqual(2);
    for (const error of errors) expect(formatProblem(error).length).toBeLessThan(1000);
  });

  test('keeps only the requested resources', () => {
    const value = encodeConfig(config('a', 'one')).bytes;
    const other = { typeUrl: 'type.googleapis.com/envoy.config.cluster.v3.Cluster', value };
    const { errors } = loadUpdate([other], codec, { mergeDomains: false });
    expect(errors.map(formatProblem)).toEqual([
      expect.stringMatching(/^resource 1: the type of the resource is ".*Cluster"/),
    ]);
  });

  test.each([
    ['truncated', encodeConfig(config('a', 'one')).bytes.subarray(0, -1)],
    ['nested too deeply', nested(20_000)],
  ])('with bytes that are %s is an error, and does not crash', (_, value) => {
    const resource = { typeUrl: RATE_LIMIT_CONFIG_TYPE, value };
    const { errors } = loadUpdate([resource], codec, { mergeDomains: false });
    expect(errors.map(formatProblem)).toEqual([expect.stringMatching(/^resource 1: the resource is not a /)]);
  });
});

/** Returns nested descriptors as bytes. */
function nested(depth: number): Buffer {
  const varint = (value: number): number[] =>
    value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(Math.floor(value / 0x80))];
  const heads: number[][] = [];
  let length = 0;
  for (let level = 0; level < depth; level++) {
    // The top level is field 3 of RateLimitConfig, and nested levels are field 4 of RateLimitDescriptor.
    const head = [level === depth - 1 ? 0x1a : 0x22, ...varint(length)];
    heads.push(head);
    length += head.length;
  }
  return Buffer.from(heads.reverse().flat());
}
