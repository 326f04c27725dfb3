import { describe, expect, test } from '@jest/globals';
import { Decider, descriptor } from '../../support/policy/decider.js';

const POLICY = `
domain: d
derive:
  - { entry: tenant, from: [token], sha256: {} }
descriptors:
  - key: a
    rate_limit: { unit: minute, requests_per_unit: 1 }
    metadata: { owner: team-a, labels: { tier: gold, deep: { x: 1 } }, list: [1] }
  - key: b
    rate_limit: { unit: minute, requests_per_unit: 1 }
    metadata: { owner: team-b, labels: { tier: silver, zone: eu, deep: { z: 2 } }, list: [2, 3], extra: null }
  - key: c
    rate_limit: { unit: minute, requests_per_unit: 1 }
    metadata: { labels: a text, __proto__: { polluted: true } }
  - key: detailed
    detailed_metric: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
    metadata: { owner: detailed }
  - key: valued
    value_to_metric: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
    metadata: { owner: valued }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 0 }
    metadata: { owner: shadow }
  - key: free
    rate_limit: { unlimited: true }
    metadata: { owner: free }
`;
const METADATA = {
  a: { owner: 'team-a', labels: { tier: 'gold', deep: { x: 1 } }, list: [1] },
  b: { owner: 'team-b', labels: { tier: 'silver', zone: 'eu', deep: { z: 2 } }, list: [2, 3], extra: null },
};

const decider = (): Decider => new Decider(POLICY, { answers: { dynamicMetadata: true } });

const one = (key: string) => descriptor([`${key}=x`]);
const metadataOf = (on: Decider, ...keys: string[]) => on.answer(keys.map(one)).dynamicMetadata?.['metadata'];

describe('RESPONSE_DYNAMIC_METADATA', () => {
  test('is off by default', () => {
    expect(new Decider(POLICY).answer([one('a')]).dynamicMetadata).toBeUndefined();
  });

  test('contains domain, descriptors and hits', () => {
    const { dynamicMetadata } = decider().answer(
      [
        descriptor(['nothing=v', 'empty=']),
        descriptor(['nothing=v'], { limit: { requestsPerUnit: 5, unit: 1 }, hitsAddend: 0 }),
        descriptor([]),
      ],
      3,
    );
    expect(dynamicMetadata).toEqual({
      domain: 'd',
      descriptors: [
        { entries: ['nothing=v', 'empty='] },
        { entries: ['nothing=v'], limit: 'requests_per_unit:5 unit:SECOND', hitsAddend: 0 },
        { entries: [] },
      ],
      hitsAddend: 3,
    });
  });

  test.each([
    [0, 6, 'unit:YEAR'],
    [7, 7, 'requests_per_unit:7 unit:7'],
  ])('an override of %p with unit %p is %p', (requestsPerUnit, unit, limit) => {
    const { dynamicMetadata } = decider().answer([descriptor(['n=v'], { limit: { requestsPerUnit, unit } })]);
    expect(dynamicMetadata).toMatchObject({ descriptors: [{ limit }] });
  });

  test('contains an unknown domain, too, and overrides with any unit', () => {
    const limit = (unit: number) => descriptor(['n=v'], { limit: { requestsPerUnit: 0, unit } });
    expect(decider().answer([limit(0), limit(99), limit(-1)], 0, 'other').dynamicMetadata).toEqual({
      domain: 'other',
      descriptors: ['', 'unit:99', 'unit:-1'].map((text) => ({ entries: ['n=v'], limit: text })),
    });
  });

  test('contains redacted values of credentials', () => {
    const secrets = descriptor(['token=sekret', 'Authorization=Bearer sekret', 'n=v']);
    for (const domain of ['d', 'other']) {
      const { dynamicMetadata } = decider().answer([secrets], 0, domain);
      expect(JSON.stringify(dynamicMetadata)).not.toMatch('sekret');
      expect(JSON.stringify(dynamicMetadata)).toMatch(/token=\[redacted .*n=v/);
    }
  });

  test('merges the metadata of rules that allowed the request: the first applies, objects are merged', () => {
    expect(metadataOf(decider(), 'a', 'b')).toEqual({
      owner: 'team-a',
      labels: { tier: 'gold', deep: { x: 1, z: 2 }, zone: 'eu' },
      list: [1],
      extra: null,
    });
    expect(metadataOf(decider(), 'b', 'a')).toMatchObject({ owner: 'team-b', labels: { tier: 'silver' } });
    expect(metadataOf(decider(), 'c', 'a')).toMatchObject({ labels: 'a text', owner: 'team-a' });
  });

  test.each(['detailed', 'valued'])(
    'contains the metadata of a rule with values in its statistics name: %s',
    (key) => {
      expect(metadataOf(decider(), key)).toEqual({ owner: key });
    },
  );

  test('of one answer never changes a later one', () => {
    const on = decider();
    on.answer([one('a'), one('b'), one('c')]);
    on.clock.stepWall(60_000_000);
    expect(metadataOf(on, 'a')).toEqual(METADATA.a);
    on.clock.stepWall(60_000_000);
    expect(metadataOf(on, 'b')).toEqual(METADATA.b);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('omits rules that are over the limit, unlimited or overridden, but not a shadow rule over its limit', () => {
    const on = decider();
    on.answer([one('a')]);
    expect(metadataOf(on, 'a', 'free')).toBeUndefined();
    expect(metadataOf(on, 'a', 'b')).toEqual(METADATA.b);
    expect(metadataOf(on, 'shadow')).toEqual({ owner: 'shadow' });
    const override = descriptor(['a=x'], { limit: { requestsPerUnit: 5, unit: 1 } });
    expect(on.answer([override]).dynamicMetadata).not.toHaveProperty('metadata');
  });

  test('repeats about 24 KiB of a request, and counts the descriptors that it omits', async () => {
    // An entry takes 128 units and 53 characters, a descriptor 128 units more.
    const entries = Array.from({ length: 8 }, (_, i) => `key=${String(i).padEnd(50)}`);
    const descriptors = Array.from({ length: 20 }, () => descriptor(entries));
    const { dynamicMetadata } = await decider().answerLarge(descriptors);
    expect(dynamicMetadata?.['descriptors']).toHaveLength(15);
    expect(dynamicMetadata?.['descriptorsLeftOut']).toBe(5);
  });

  test('contains a limited number of thousands of members, and the number of omitted rules', async () => {
    const owner = (i: number) =>
      `{ owner: all, ${Array.from({ length: 50 }, (_, j) => `m${i}x${j}: v`).join(', ')} }`;
    const limit = 'rate_limit: { unit: minute, requests_per_unit: 1 }';
    const nodes = Array.from(
      { length: 100 },
      (_, i) => `  - { key: k${i}, ${limit}, metadata: ${owner(i)} }`,
    );
    const more = [
      '  - { key: same, rate_limit: { unit: minute, requests_per_unit: 9 }, metadata: { owner: all } }',
    ];
    const policy = ['domain: d', 'descriptors:', ...nodes, ...more].join('\n');
    const on = new Decider(policy, { answers: { dynamicMetadata: true } });
    const few = on.answer(Array.from({ length: 10 }, (_, i) => one(`k${i}`))).dynamicMetadata;
    expect(Object.keys(few?.['metadata'] as object)).toHaveLength(501);
    expect(few).not.toHaveProperty('metadataLeftOut');
    on.clock.stepWall(60_000_000);
    const all = Array.from({ length: 100 }, (_, i) => one(`k${i}`));
    const many = (await on.answerLarge(all)).dynamicMetadata;
    const members = Object.keys(many?.['metadata'] as object).length;
    expect(members).toBeGreaterThan(650);
    expect(members).toBeLessThan(768);
    expect(many?.['metadataLeftOut']).toBe(100 - Math.floor((members - 1) / 50));
    // Members that were merged before have no cost.
    on.clock.stepWall(60_000_000);
    expect(on.answer(Array.from({ length: 30 }, () => one('same'))).dynamicMetadata).toMatchObject({
      metadata: { owner: 'all' },
    });
  });

  test('omits a string that is too long, including strings in nested objects', () => {
    const limit = 'rate_limit: { unit: minute, requests_per_unit: 9 }';
    const policy = `
domain: d
descriptors:
  - { key: a, ${limit}, metadata: { labels: { x: 1 } } }
  - { key: b, ${limit}, metadata: { labels: { text: ${'x'.repeat(100_000)}, y: 2 } } }
  - { key: c, ${limit}, metadata: { labels: { z: 3 } } }
`;
    const on = new Decider(policy, { answers: { dynamicMetadata: true } });
    expect(on.answer([one('a'), one('b'), one('c')]).dynamicMetadata).toMatchObject({
      metadata: { labels: { x: 1 } },
      metadataLeftOut: 2,
    });
    expect(metadataOf(on, 'c', 'a')).toEqual({ labels: { z: 3, x: 1 } });
  });
});
