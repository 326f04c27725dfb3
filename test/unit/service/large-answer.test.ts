import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../src/service/caller.js';
import { Refusal } from '../../../src/service/refusal.js';
import { TurnQueue } from '../../../src/service/turn-queue.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

const LIMIT = 'token_bucket: { max_tokens: 2, fill_interval: 1h }';
const POLICY = `
domain: d
descriptors:
  - key: a
    rate_limits: [{ name: one, ${LIMIT} }, { name: two, ${LIMIT} }, { name: three, ${LIMIT} }]
`;
/** With this many limits of one descriptor, a few descriptors that are planned in one turn have a large answer. */
const MANY = `
domain: d
descriptors:
  - key: a
    rate_limits: [${Array.from({ length: 16 }, (_, i) => `{ name: l${i}, ${LIMIT} }`).join(', ')}]
`;
const COUNT = 1000;
/** Maximum number of decisions that are counted in one turn. */
const MOST_IN_A_TURN = 510;

const request = {
  domain: 'd',
  hitsAddend: 0,
  descriptors: Array.from({ length: COUNT }, (_, i) => descriptor([`a=${i % 700}`])),
};

/** Returns a decider whose turns the test runs one by one. */
function byTurns(
  policy = POLICY,
  queue: { readonly maxJobs?: number } = {},
): {
  readonly on: Decider;
  readonly turn: () => Promise<boolean>;
} {
  const waiting: (() => void)[] = [];
  const turns = new TurnQueue({
    monotonicMicros: () => 0,
    nextTurn: (callback) => waiting.push(callback),
    ...queue,
  });
  const turn = async (): Promise<boolean> => {
    waiting.shift()?.();
    for (let i = 0; i < 10; i++) await Promise.resolve();
    return waiting.length > 0;
  };
  return { on: new Decider(policy, { turns }), turn };
}

describe('a large answer', () => {
  test('is built and counted in steps, and contains the decision of every descriptor', async () => {
    const { on, turn } = byTurns();
    const answer = on.service.decide(request);
    let counted = 0;
    let turns = 0;
    do {
      const before = on.observer.told.length;
      await turn();
      counted = on.observer.told.length;
      turns++;
      expect(counted - before).toBeLessThanOrEqual(MOST_IN_A_TURN);
    } while (counted < 3 * COUNT && turns < 100);
    expect(turns).toBeGreaterThan((3 * COUNT) / MOST_IN_A_TURN);
    while (await turn());
    const decided = await answer;
    if (decided instanceof Refusal) throw new Error(decided.message);
    expect(on.observer.told).toHaveLength(3 * COUNT);
    expect(on.observer.descriptors).toHaveLength(3 * COUNT);
    expect(decided.statuses).toHaveLength(COUNT);
    expect(decided.statuses.map(({ limitRemaining }) => limitRemaining)).toEqual(
      request.descriptors.map((_, i) => (i >= 700 ? 0 : 1)),
    );
    expect(decided.overallCode).toBe(CODE.OK);
  });

  test('is counted completely after its caller has gone, and built at once if no more requests may wait', async () => {
    let gone = false;
    const { on, turn } = byTurns();
    const answer = on.service.decide(request, {
      ...CALLER_WITHOUT_DEADLINE,
      cancelled: () => gone,
    });
    while (on.observer.told.length === 0 && (await turn()));
    gone = true;
    while (await turn());
    await answer;
    expect(on.observer.told).toHaveLength(3 * COUNT);

    const full = byTurns(MANY, { maxJobs: 0 });
    const few = { ...request, descriptors: request.descriptors.slice(0, 70) };
    const told = await full.on.service.decide(few);
    expect(told).toMatchObject({ overallCode: CODE.OK });
    expect(full.on.observer.told).toHaveLength(16 * 70);
  });
});
