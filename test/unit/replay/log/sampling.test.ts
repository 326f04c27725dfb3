import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { GapFinder } from '../../../../src/replay/log/sampling/gap-finder.js';
import { IdSample } from '../../../../src/replay/log/sampling/sampled-ids.js';
import { SamplingEvidence } from '../../../../src/replay/log/sampling/sampling.js';

/** Returns random request IDs that are the same in every run. */
function* requestIds(count: number): Generator<string> {
  for (let i = 0; i < count; i++) {
    const hex = createHash('md5').update(String(i)).digest('hex');
    yield `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }
}

describe('request IDs', () => {
  test.each([
    [10, 100],
    [1, 100],
    [95, 100],
    [333, 10_000],
    [50_000, 1_000_000],
  ])('of a sample of %d in %d', (numerator, denominator) => {
    const ids = new IdSample();
    for (const id of requestIds(50_000))
      if (Number.parseInt(id.slice(0, 8), 16) % denominator < numerator) ids.add(id);
    expect(ids.sample?.denominator).toBe(denominator);
    expect(Math.abs((ids.sample?.share ?? 0) / (numerator / denominator) - 1)).toBeLessThan(0.01);
  });

  test('of a whole log, of few requests, of one request, and of other shapes', () => {
    const whole = new IdSample();
    for (const id of requestIds(30_000)) whole.add(id);
    expect(whole.sample).toBeUndefined();
    const few = new IdSample();
    for (const id of requestIds(5)) few.add(id);
    expect(few.sample).toBeUndefined();
    const others = new IdSample();
    for (let i = 0; i < 10_000; i++) {
      others.add('0a1b2c3d-0000-4000-8000-000000000000');
      others.add(`0193a5c2-${(i % 9999).toString().padStart(4, '0')}-7000-8000-000000000000`);
      others.add(String(i));
    }
    expect(others.sample).toBeUndefined();
  });
});

describe('gaps', () => {
  const fill = (gaps: GapFinder, from: number, to: number, requests: number) => {
    for (let second = from; second < to; second++) gaps.add(second, requests);
  };

  test('are reported if the rate before predicts many requests', () => {
    const gaps = new GapFinder();
    fill(gaps, 1000, 2000, 20);
    fill(gaps, 2060, 3000, 20);
    expect(gaps).toMatchObject({ count: 1, longest: { fromSecond: 2000, toSecond: 2060, missing: 1200 } });
    fill(gaps, 9000, 9001, 9);
    expect(gaps).toMatchObject({ count: 1 });
    fill(gaps, 9100, 9101, 10);
    expect(gaps).toMatchObject({ count: 2, longest: { fromSecond: 3000, toSecond: 9100 } });
  });

  test('are not reported for low rates, short times, and bursts', () => {
    const gaps = new GapFinder();
    gaps.add(0, 5);
    gaps.add(100, 5);
    fill(gaps, 200, 900, 2);
    gaps.add(1390, 10);
    fill(gaps, 2000, 2001, 1000);
    gaps.add(2059, 1);
    expect(gaps.count).toBe(0);
  });
});

test('each finding has a reason', () => {
  const evidence = new SamplingEvidence(0.1);
  evidence.addSample('1');
  evidence.addSample('0.05');
  for (const id of requestIds(20_000))
    if (Number.parseInt(id.slice(0, 8), 16) % 100 < 10) evidence.addRequestId(id);
  const gaps = new GapFinder();
  for (let second = 0; second < 600; second++) gaps.add(second, 100);
  gaps.add(4000, 10);
  expect(evidence.found(gaps)).toEqual([
    { kind: 'stated', share: 0.1, reason: 'you stated a sample of 10%' },
    { kind: 'stated', share: 0.05, reason: 'the lines state a sample of 5% ("sample")' },
    {
      kind: 'request_ids',
      share: 0.1,
      reason: expect.stringMatching(
        /^the request IDs show a sample of about 10%: the first 32 bits of all \d+ IDs are below 10 modulo 100,/,
      ),
    },
    {
      kind: 'gap',
      reason:
        'the log has no requests from 1970-01-01T00:10:00Z to 1970-01-01T01:06:40Z, ' +
        'where the rate before predicts 340000',
    },
  ]);
  expect(new SamplingEvidence(undefined).found(new GapFinder())).toEqual([]);
});
