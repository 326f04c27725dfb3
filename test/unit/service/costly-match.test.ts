/* Requests whose values cause long matching of regular expressions, next to other requests. */
import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { Refusal } from '../../../src/service/refusal.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

const PATTERNS = Array.from({ length: 100 }, (_, i) => `        - '.*/res${i}/[a-z]+'`).join('\n');
const POLICY = `domain: d
descriptors:
  - key: path
    value_regex:
${PATTERNS}
    share_threshold: true
    rate_limit: { name: matched, unit: hour, requests_per_unit: 100 }
  - key: path
    rate_limit: { name: others, unit: hour, requests_per_unit: 100 }
`;
const path = (i: number, end: string) => descriptor([`path=${`/${i}`.padEnd(200 - end.length, '-')}${end}`]);
const paths = (count: number) =>
  Array.from({ length: count }, (_, i) => path(i, i % 2 === 0 ? '/res7/x' : '/res7/X'));

function decide(decider: Decider, count: number, first = 0) {
  const descriptors = paths(first + count).slice(first);
  return decider.service.decide({ domain: 'd', descriptors, hitsAddend: 0 });
}

/** Returns a decider whose automata have already built the states for such values. */
async function warm(policy = POLICY): Promise<Decider> {
  const decider = new Decider(policy);
  for (let round = 0; round < 20; round++) await decide(decider, 60, 1000 + 60 * round);
  return decider;
}

describe('many values that are new to the regular expressions', () => {
  test('other requests are decided in between, and the result is the same', async () => {
    const decider = await warm(POLICY.replaceAll('100 }', '10000 }'));
    const late = decide(decider, 60);
    expect(late).toBeInstanceOf(Promise);
    expect(decider.answer([path(99, '/res7/x')]).statuses[0]).toMatchObject({
      limitRemaining: 10_000 - 600 - 1,
    });
    const response = await late;
    if (response instanceof Refusal) throw new Error(response.message);
    expect(response.overallCode).toBe(CODE.OK);
    expect(response.statuses.map((status) => status.currentLimit?.name)).toEqual(
      Array.from({ length: 60 }, (_, i) => (i % 2 === 0 ? 'matched' : 'others')),
    );
    expect(response.statuses[58]).toMatchObject({ limitRemaining: 10_000 - 600 - 1 - 30 });
  });

  test('known values are decided at once, including a long one', async () => {
    const decider = await warm(POLICY.replaceAll('100 }', '10000 }'));
    expect(decide(decider, 60)).toBeInstanceOf(Promise);
    await decide(decider, 60);
    expect(decide(decider, 60)).not.toBeInstanceOf(Promise);
    const long = descriptor([`path=${'/res7'.repeat(600)}`]);
    await decider.service.decide({ domain: 'd', descriptors: [long], hitsAddend: 0 });
    expect(decider.answer([long]).statuses[0]).toMatchObject({ currentLimit: { name: 'others' } });
  });

  test('an error is returned after the wait', async () => {
    const decider = new Decider(POLICY, { maxLimits: 60 });
    const list = POLICY.replace(
      'rate_limit: { name: others',
      'rate_limits: [{ unit: day, requests_per_unit: 9 }, { name: others',
    );
    const lists = new Decider(list.replace(/others(.*)\n$/, 'others$1 ]\n'), { maxLimits: 60 });
    expect(await decide(decider, 60)).not.toBeInstanceOf(Refusal);
    expect(await decide(lists, 60)).toMatchObject({ kind: 'bad_request' });
  });
});
