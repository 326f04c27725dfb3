import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/limiter/entry.js';
import { MAX_VISITED_NODES, type PossibleEnd, possibleEnds } from '../../../src/policy/possible-ends.js';
import { seededRandom } from '../../support/limiter/seeded-random.js';
import { entries, policyOf } from '../../support/policy/policies.js';

const POLICY = policyOf(`
domain: d
descriptors:
  - key: tenant
    value: acme
    rate_limit: { unit: hour, requests_per_unit: 1 }
    descriptors:
      - { key: path, value: /files/*, share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 2 } }
      - { key: path, value: /a, rate_limit: { unit: hour, requests_per_unit: 3 } }
  - key: tenant
    descriptors:
      - { key: user, rate_limit: { unit: hour, requests_per_unit: 4 } }
      - { key: tenant, value: acme, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - key: ip
    value_cidr: [10.0.0.0/8]
    descriptors:
      - { key: user, value: root, rate_limit: { unit: hour, requests_per_unit: 6 } }
`);

/** Returns the ends that a search finds, and whether it is complete. */
function endsOf(pairs: readonly Entry[]): { readonly ends: readonly PossibleEnd[]; readonly all: boolean } {
  const ends: PossibleEnd[] = [];
  const all = possibleEnds(POLICY, pairs, (end) => ends.push(end));
  return { ends, all };
}

const limitsOf = (...pairs: string[]) =>
  endsOf(entries(...pairs)).ends.map(({ node }) => node.rules[0]?.path);

describe('possibleEnds', () => {
  test('finds ends with all pairs, and any other entries', () => {
    expect(limitsOf('tenant=acme')).toEqual([
      'tenant=acme',
      'tenant=acme/path=/files/*',
      'tenant=acme/path=/a',
      'tenant/tenant=acme',
    ]);
    expect(limitsOf('user=root')).toEqual(['tenant/user', 'ip in 10.0.0.0/8/user=root']);
    expect(limitsOf('user=bob', 'tenant=b')).toEqual(['tenant/user']);
    expect(limitsOf('ip=11.0.0.1')).toEqual([]);
    expect(limitsOf('ip=10.1.2.3')).toEqual(['ip in 10.0.0.0/8/user=root']);
    expect(limitsOf('tenant=acme', 'user=bob')).toEqual([]);
  });

  test('names the buckets whose values are known, and reports the missing entries of the others', () => {
    const [, files, , twice] = endsOf(entries('tenant=acme')).ends;
    expect(files).toMatchObject({ isNamed: true, unknownKeys: [] });
    expect(files?.entries).toMatchObject([{ value: 'acme' }, { key: 'path', value: undefined }]);
    expect(twice).toMatchObject({ isNamed: false, unknownKeys: ['tenant'] });
  });

  test('finds the end of every descriptor by any of its entries, with the same bucket name', () => {
    const random = seededRandom(1);
    const values = ['acme', 'b', 'root', '/a', '/files/x', '10.0.0.1', '11.0.0.1'];
    const keys = ['tenant', 'user', 'path', 'ip'];
    let matched = 0;
    for (let i = 0; i < 3000; i++) {
      const some = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
      const count = 1 + Math.floor(random() * 2);
      const descriptor = Array.from({ length: count }, () => ({ key: some(keys), value: some(values) }));
      const match = POLICY.match(descriptor);
      if (match.rules.length === 0) continue;
      matched++;
      const pairs = descriptor.filter(() => random() < 0.6);
      const found = endsOf(pairs).ends.filter(({ node }) => node.rules === match.rules);
      expect(found).not.toEqual([]);
      for (const { isNamed, entries, node } of found) {
        if (!isNamed) continue;
        const naming = entries.map(({ key, value = '' }) => ({ key, value }));
        // The bucket does not depend on which values are known. For missing values, the policy's own values are used.
        expect(POLICY.matchAt(node, naming).keys).toEqual(match.keys);
      }
    }
    expect(matched).toBeGreaterThan(100);
  });

  test('ends even if keys repeat below each other', () => {
    let nested = '{ key: k, rate_limit: { unit: hour, requests_per_unit: 1 } }';
    for (let depth = 0; depth < 12; depth++)
      nested = `{ key: k, descriptors: [${nested}, { key: k, value: v${depth} }] }`;
    const deep = policyOf(`domain: d\ndescriptors: [${nested}]`);
    const pairs = Array.from({ length: 14 }, (_, i) => ({ key: 'k', value: `x${i}` }));
    expect(possibleEnds(deep, pairs, () => {})).toBe(false);
  });

  test('ends even if only nodes without an end remain', () => {
    const { root } = policyOf(
      'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 1 } }]',
    );
    const [level] = root.levels.values();
    const [leaf] = (level as NonNullable<typeof level>).nodes;
    const nodes = Array.from({ length: MAX_VISITED_NODES + 1 }, () => leaf);
    const levels = new Map([['k', { ...level, nodes }]]) as unknown as typeof root.levels;
    const large = { root: { ...root, levels } as unknown as typeof root };
    expect(possibleEnds(large, entries('z=q'), () => {})).toBe(false);
  });
});
