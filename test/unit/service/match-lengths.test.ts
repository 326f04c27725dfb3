/* Maximum length of values that are matched with regular expressions, as stated in docs/policy/matching.md. */
import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { CALLER_WITHOUT_DEADLINE, maxStepsFor } from '../../../src/service/caller.js';
import { Refusal } from '../../../src/service/refusal.js';
import { pageText } from '../../support/docs/pages.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

/** Each of these patterns reads every character of a value. */
const policyOf = (patterns: number): string => `
domain: d
descriptors:
${Array.from({ length: patterns }, (_, i) => `  - { key: k, value_regex: '.*x${i}', rate_limit: { unit: hour, requests_per_unit: 10 } }`).join('\n')}
`;

/** Decides a value for a caller with this deadline. */
async function decide(
  decider: Decider,
  value: string,
  waitsMs: number,
): Promise<'decided' | 'denied unseen'> {
  const { clock, observer, service } = decider;
  observer.told.length = 0;
  const request = { domain: 'd', descriptors: [descriptor([`k=${value}`])], hitsAddend: 0 };
  const now = clock.monotonicMicros();
  const response = await service.decide(request, {
    ...CALLER_WITHOUT_DEADLINE,
    deadlineMicros: now + waitsMs * 1000,
  });
  if (response instanceof Refusal) throw new Error(response.message);
  const isDenied = response.overallCode === CODE.OVER_LIMIT;
  expect(observer.told.includes('d k exceeded denied')).toBe(isDenied);
  return isDenied ? 'denied unseen' : 'decided';
}

const text = pageText('docs/policy/matching.md').replaceAll(/\s+/g, ' ');
const number = (count: number): string => count.toLocaleString('en-US');

test('the manual has the number of steps', () => {
  expect(text).toContain(`A request may take ${number(maxStepsFor(1000))} steps for each millisecond`);
  expect(text).toContain(`and at most ${number(maxStepsFor(Number.POSITIVE_INFINITY))} steps`);
});

describe.each([
  [32, 1, 900_000],
  [320, 10, 90_000],
  [1000, 32, 28_000],
])('with %d patterns', (patterns, sets, characters) => {
  const decider = new Decider(policyOf(patterns));
  const WAITS_MS = 18.5;

  test('the manual has the correct lengths of values', async () => {
    expect(text).toContain(`always matched if ${WAITS_MS} ms are left`);
    expect(text).toContain(`| ${number(patterns)} | ${sets} | ${number(characters)} |`);
    // The first value builds states, which are exempt from the budget.
    expect(await decide(decider, 'a'.repeat(characters), WAITS_MS)).toBe('decided');
    // The cache contains none of these values.
    for (const last of ['b', 'é'])
      expect(await decide(decider, 'a'.repeat(characters - 1) + last, WAITS_MS)).toBe('decided');
    expect(await decide(decider, '€'.repeat(characters / 4), WAITS_MS)).toBe('decided');
  });

  test('a value beyond all steps is denied unread, for any deadline', async () => {
    const most = Math.ceil(maxStepsFor(Number.POSITIVE_INFINITY) / sets);
    expect(await decide(decider, 'a'.repeat(most), 60_000)).toBe('denied unseen');
    expect(await decide(decider, '€'.repeat(Math.ceil(most / 4)), 60_000)).toBe('denied unseen');
  });
});
