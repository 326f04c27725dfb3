import { describe, expect, test } from '@jest/globals';
import { dumpTree } from '../../../../src/config/show/dump-tree.js';
import type { CompiledPolicy } from '../../../../src/policy/compiled-policy.js';
import { PLAN_PARTS } from '../../../../src/policy/plans/plan-table.js';
import type { PolicySet } from '../../../../src/policy/policy-set.js';
import type { ToWorker } from '../../../../src/server/workers/messages.js';
import { PolicyFeed } from '../../../../src/server/workers/policy-feed.js';
import { ReceivedPolicyProvider } from '../../../../src/server/workers/received-policy-provider.js';
import { policyOf } from '../../../support/policy/policies.js';
import { waitFor } from '../../../support/process/wait-for.js';

/** Returns policies with enough rules for several slices. */
function policies(version: string): PolicySet {
  const rules = Array.from(
    { length: 1000 },
    (_, at) => `  - { key: k, value: v${at}, rate_limit: { requests_per_unit: ${at + 1}, unit: hour } }\n`,
  );
  const policy = policyOf(`domain: d\ndescriptors:\n${rules.join('')}`);
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

  test('are built by a worker, with tables of plans and the policies that it has', async () => {
    const rows = Array.from({ length: 20_000 }, (_, n) => `tenant-${n},${n % 2 === 0 ? 'free' : 'gold'}\n`);
    const planned = policyOf(
      'domain: planned\nplans: { by: t, from: rows.csv, default: free, define: { free: { n: 1 }, gold: { n: 2 } } }\n' +
        'descriptors: [{ key: t, rate_limit: { unit: day, requests_per_unit: { plan: n } } }]\n',
      { 'rows.csv': `t,plan\n${rows.join('')}` },
    );
    const kept = policies('kept').domains.get('d') as CompiledPolicy;
    const first: PolicySet = { domains: new Map([['d', kept]]), version: 'first' };
    const second: PolicySet = {
      domains: new Map([...first.domains, ['planned', planned]]),
      version: 'second',
    };
    let current = first;
    let worker: ReceivedPolicyProvider | undefined;
    const feed = new PolicyFeed(
      () => current,
      (message) => {
        if (message.kind === 'policies_begin') worker?.begin();
        else if (message.kind === 'policies_slice') worker?.add(message.slice);
        else if (message.kind === 'policies_end') worker?.end(message.version);
      },
      () => Promise.resolve(),
    );
    worker = new ReceivedPolicyProvider(feed.whole());
    const before = worker.current();
    expect(dumpTree(before as PolicySet, 0)).toBe(dumpTree(first, 0));
    current = second;
    const reloaded = new Promise((resolve) => worker?.onReload(resolve));
    await feed.send();
    await reloaded;
    const after = worker.current() as PolicySet;
    expect(after.version).toBe('second');
    expect(after.domains.get('d')).toBe(before?.domains.get('d'));
    expect(dumpTree(after, 0)).toBe(dumpTree(second, 0));
    const table = after.domains.get('planned')?.plans;
    for (const part of PLAN_PARTS) expect(table?.[part]).toEqual(planned.plans?.[part]);
    // A worker that starts now gets everything at once.
    const late = new ReceivedPolicyProvider(feed.whole()).current() as PolicySet;
    expect(dumpTree(late, 0)).toBe(dumpTree(second, 0));
  });
});
