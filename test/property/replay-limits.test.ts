/*
 * The limits that a replay names are true: a replay with such a limit denies no larger share of the requests than the
 * report says. For steady traffic, the same holds for a log that is twelve times as long.
 */
import { expect, test } from '@jest/globals';
import { replayedServer } from '../../src/cli/replay.js';
import { loadPolicies } from '../../src/config/files/load-policies.js';
import type { PolicySet } from '../../src/policy/compiled-policy.js';
import type { NeededLimits } from '../../src/replay/limits-needed.js';
import { Replay, type ReplayResult } from '../../src/replay/replay.js';
import { type LogMap, readReplayMap } from '../../src/replay/replay-map.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { TempDir } from '../support/process/temp-dir.js';

const LOGS = process.env['WEIR_TEST_FULL'] === undefined ? 3 : 60;
const SHARES = [0, 0.001, 0.01];
const START = Date.parse('2026-11-20T09:59:17Z') * 1000;

const folder = new TempDir();
const map = readReplayMap(
  folder.write(
    'map.yaml',
    'domain: shop\ntime: time\nduration: took\nhits: { from: hits }\n' +
      'at_end: { hits: { from: used }, descriptors: [] }\ndescriptors: [[{ key: tenant, from: tenant }]]\n',
  ),
) as LogMap;

type LimitText = (limit: number) => string;

function policyOf(limit: string): PolicySet {
  const text = `domain: shop\ndescriptors: [{ key: tenant, rate_limit: { ${limit} } }]\n`;
  const { policySet, errors } = loadPolicies([folder.write('policy.yaml', text)]);
  expect(errors).toEqual([]);
  return policySet;
}

async function replayWith(limit: string, lines: readonly object[]): Promise<ReplayResult> {
  const log = folder.write('log', lines.map((line) => JSON.stringify(line)).join('\n'));
  const common = {
    against: undefined,
    by: undefined,
    server: replayedServer('hold'),
    signal: new AbortController().signal,
    onProgress: () => {},
  };
  return new Replay({ ...common, policy: policyOf(limit), map, logs: [log] }).run();
}

async function neededFor(limit: string, lines: readonly object[]): Promise<NeededLimits> {
  const [needed] = [...(await replayWith(limit, lines)).needed.values()];
  return needed as NeededLimits;
}

/** Expects that each limit denies at most its share of the requests in a log. */
async function expectShares(
  text: LimitText,
  { limits }: NeededLimits,
  lines: readonly object[],
): Promise<void> {
  for (const [at, limit] of limits.entries()) {
    if (limit === undefined) continue;
    const { all } = (await replayWith(text(Math.max(1, limit)), lines)).tally;
    const share = SHARES[at] as number;
    expect({ limit, share, isKept: all.after <= share * all.requests }).toMatchObject({ isKept: true });
  }
}

/** `priorities` in which the busiest tenant leaves a part of the limit to the others. */
const classes = (kept: string): string =>
  `priorities: { by: tenant, keep: { "tenant 0": ${kept}, others: 0 }, unknown: others }`;

const KINDS: readonly LimitText[] = [
  (limit) => `token_bucket: { max_tokens: ${limit}, tokens_per_fill: 3, fill_interval: 2s }`,
  (limit) => `token_bucket: { max_tokens: ${limit}, fill_interval: 5s }, allow_debt: true`,
  (limit) =>
    `token_bucket: { max_tokens: ${limit}, fill_interval: 1s }, hold: { amount: 3, expires_after: 10s, unknown: free }`,
  (limit) => `unit: minute, requests_per_unit: ${limit}`,
  (limit) => `unit: second, unit_multiplier: 7, requests_per_unit: ${limit}`,
  (limit) => `concurrency: { max: ${limit}, expires_after: 20s }`,
  // All tenants share one bucket. A share, and a number.
  (limit) => `unit: minute, requests_per_unit: ${limit}, ${classes('40%')}`,
  (limit) => `concurrency: { max: ${limit}, expires_after: 20s }, ${classes('3')}`,
  (limit) => `token_bucket: { max_tokens: ${limit}, tokens_per_fill: 5, fill_interval: 1s }, ${classes('3')}`,
];

test.each(KINDS)('random logs: kind %#', async (text) => {
  for (let seed = 1; seed <= LOGS; seed++) {
    const random = seededRandom(seed);
    let time = START;
    const lines = Array.from({ length: 4000 }, () => {
      time += Math.floor(random() * 600_000);
      const tenant = `tenant ${Math.floor(20 * random() ** 2)}`;
      const hits = random() < 0.1 ? 2 : 1;
      return { time, tenant, hits, used: Math.floor(random() * 5), took: `${Math.floor(random() * 8000)}ms` };
    });
    const needed = await neededFor(text(5), lines);
    expect(needed.requests).toBeGreaterThan(1000);
    await expectShares(text, needed, lines);
  }
});

/** Two requests a second of one caller. */
function steady(minutes: number, start = START): readonly object[] {
  return Array.from({ length: minutes * 120 }, (_, at) => ({
    time: start + at * 500_000,
    tenant: 'acme',
    took: '700ms',
  }));
}

const STEADY: readonly (readonly [LimitText, string | undefined])[] = [
  [(limit) => `token_bucket: { max_tokens: ${limit}, fill_interval: 500ms }`, undefined],
  [(limit) => `token_bucket: { max_tokens: ${limit}, fill_interval: 400ms }`, undefined],
  [(limit) => `token_bucket: { max_tokens: ${limit}, fill_interval: 501ms }`, 'rate'],
  [(limit) => `token_bucket: { max_tokens: ${limit}, fill_interval: 1s }`, 'rate'],
  [(limit) => `token_bucket: { max_tokens: ${limit}, tokens_per_fill: 600, fill_interval: 1h }`, 'rate'],
  [(limit) => `unit: second, requests_per_unit: ${limit}`, undefined],
  [(limit) => `unit: minute, requests_per_unit: ${limit}`, undefined],
  [(limit) => `unit: minute, unit_multiplier: 5, requests_per_unit: ${limit}`, undefined],
  [(limit) => `unit: hour, requests_per_unit: ${limit}`, 'short_log'],
  [(limit) => `unit: day, requests_per_unit: ${limit}`, 'short_log'],
  [(limit) => `concurrency: { max: ${limit}, expires_after: 20s }`, undefined],
];

test.each(STEADY)('five minutes of 2 requests a second: kind %#', async (text, why) => {
  const lines = steady(5);
  expect(lines.length).toBe(600);
  const needed = await neededFor(text(1), lines);
  expect([needed.why?.kind, needed.limits[0] === undefined]).toEqual([why, why !== undefined]);
  await expectShares(text, needed, lines);
  await expectShares(text, needed, steady(60));
});

test('says by how much a caller exceeds the refill', async () => {
  const lines = [...steady(5), ...steady(5, START + 250_000).map((line) => ({ ...line, tenant: 'zoo' }))];
  const { why } = await neededFor(STEADY[3]?.[0](1) as string, lines);
  expect(why).toMatchObject({ kind: 'rate', callers: 2, excess: expect.closeTo(1, 2) });
});

test('ignores a caller that exceeds the refill for a part of the log', async () => {
  const lines = [...steady(5), { time: START + 3_600_000_000, tenant: 'zoo', took: '1ms' }];
  const { why, limits } = await neededFor(STEADY[3]?.[0](1) as string, lines);
  expect([why, limits[0]]).toEqual([undefined, 301]);
});
