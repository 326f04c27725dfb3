import { beforeAll, describe, expect, test } from '@jest/globals';
import { dumpJson } from '../../../src/config/show/dump.js';
import { isUsable } from '../../../src/page/ask/usable.js';
import { AdminBench, entriesOf } from '../../support/buckets/admin-bench.js';

const POLICY = `
domain: d
derive:
  - { entry: tenant, from: [api_key], sha256: { "${'0'.repeat(64)}": acme } }
descriptors:
  - key: tenant
    phase: { grace_period: 2026-01-01T00:00:00Z, active: 2126-12-01T00:00:00Z }
    rate_limit: { unit: hour, requests_per_unit: 10 }
    descriptors:
      - { key: user, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: free, rate_limit: { unlimited: true } }
`;

/** Returns the answer with another value at one of its paths. */
function withOther(answer: unknown, path: readonly (string | number)[], value: unknown): unknown {
  const copy = structuredClone(answer) as Record<string | number, unknown>;
  let place = copy;
  for (const step of path.slice(0, -1)) place = place[step] as typeof copy;
  place[path.at(-1) ?? ''] = value;
  return copy;
}

describe.each([true, false])('answers about buckets, on Redis: %s', (redis) => {
  const bench = new AdminBench(POLICY, redis);
  const acme = { domain: 'd', entries: entriesOf('tenant=acme') };
  let shown: unknown;
  beforeAll(async () => {
    shown = JSON.parse(JSON.stringify(await bench.ask({ action: 'show', ...acme })));
  });

  test('are usable for any request', async () => {
    const questions = [
      { action: 'show', ...acme },
      { action: 'show', domain: 'd', entries: entriesOf('nobody=x') },
      { action: 'show', ...acme, limit: '100/minute' },
      { action: 'grant', ...acme, tokens: 5, dry_run: true },
      { action: 'reset', ...acme },
    ] as const;
    for (const question of questions) {
      const answer: unknown = JSON.parse(JSON.stringify(await bench.ask(question)));
      expect([question, isUsable('buckets', answer)]).toEqual([question, true]);
    }
  });

  test('may contain a concurrency limit, which has no times', () => {
    const now = { left: 7, debt: 0, next_token_in: null, full_in: null, in_flight: 3 };
    expect(isUsable('buckets', withOther(shown, ['buckets', 0, 'now'], now))).toBe(true);
  });

  test.each([
    [['buckets'], {}],
    [['notes'], 'none'],
    [['entries'], undefined],
    [['meets'], undefined],
    [['store'], null],
  ])('are not with another value at %j', (path, value) => {
    expect(isUsable('buckets', shown)).toBe(true);
    expect(isUsable('buckets', withOther(shown, path, value))).toBe(false);
  });

  test.each([[{}], [null], [[]], ['<html>']])('%j is invalid', (answer) => {
    expect(isUsable('buckets', answer)).toBe(false);
  });
});

describe('the policies', () => {
  const bench = new AdminBench(POLICY);
  const domains = [
    { domain: 'd', state: 'ok', files: ['d.yaml'] },
    { domain: 'gone', state: 'absent', files: [] },
  ] as const;
  const dumped: unknown = JSON.parse(
    JSON.stringify(dumpJson({ domains: bench.policies, version: '1' }, domains, [], 0)),
  );
  const PATH = 'rlconfig?format=json';

  test('are usable, in effect or not', () => {
    expect(isUsable(PATH, dumped)).toBe(true);
    expect(isUsable(PATH, JSON.parse(JSON.stringify(dumpJson(undefined, [], [], 0))))).toBe(true);
  });

  test.each([
    [['domains'], undefined],
    [['version'], 1],
  ])('are not with another value at %j', (path, value) => {
    expect(isUsable(PATH, withOther(dumped, path, value))).toBe(false);
  });
});
