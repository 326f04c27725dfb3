import { describe, expect, test } from '@jest/globals';
import type { PolicySet } from '../../../../src/policy/policy-set.js';
import type { ToWorker } from '../../../../src/server/workers/messages.js';
import { PolicyFeed } from '../../../../src/server/workers/policy-feed.js';
import { parsePolicy } from '../../../support/policy/parse-policy.js';
import { waitFor } from '../../../support/process/wait-for.js';

/** Returns policies with enough rules for several slices. */
function policies(version: string): PolicySet {
  const rules = Array.from(
    { length: 1000 },
    (_, at) => `  - { key: k, value: v${at}, rate_limit: { requests_per_unit: ${at + 1}, unit: hour } }\n`,
  );
  const text = Buffer.from(`domain: d\ndescriptors:\n${rules.join('')}`);
  const { policy } = parsePolicy('policy.yaml', text, () => {
    throw new Error('no other file is named');
  });
  if (policy === undefined) throw new Error('the policy is bad');
  return { domains: new Map([['d', policy]]), version };
}

describe('policies for workers', () => {
  test('are sent no faster than the workers accept them', async () => {
    const next = policies('next');
    let current: PolicySet | undefined;
    const sent: ToWorker['kind'][] = [];
    let takeOne = (): void => {};
    const feed = new PolicyFeed(
      () => current,
      ({ kind }) => sent.push(kind),
      () =>
        new Promise((resolve) => {
          takeOne = resolve;
        }),
    );
    current = next;
    const done = feed.send();
    let slices = 0;
    while (sent.at(-1) !== 'policies_end') {
      slices++;
      await waitFor(
        'the next slice',
        () => sent.filter((kind) => kind === 'policies_slice').length === slices,
      );
      const before = sent.length;
      // No further slice follows in the next turns of the event loop.
      await new Promise(setImmediate);
      await new Promise(setImmediate);
      expect(sent).toHaveLength(before);
      takeOne();
      await waitFor('what comes then', () => sent.length > before);
    }
    await done;
    expect(slices).toBeGreaterThan(10);
    expect(sent.filter((kind) => kind !== 'policies_slice')).toEqual(['policies_begin', 'policies_end']);
  });
});
