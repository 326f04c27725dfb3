import { expect, test } from '@jest/globals';
import type { LoggedCall } from '../../../src/replay/log-request.js';
import { MAX_CALLERS, type Row, Tally, Verdict } from '../../../src/replay/tally.js';
import { seededRandom } from '../../support/limiter/seeded-random.js';

function call(tenant: string, more: Partial<LoggedCall> = {}): LoggedCall {
  const descriptor = {
    entries: [{ key: 'tenant', value: tenant }],
    limit: undefined,
    hitsAddend: 1,
    isNegativeHits: false,
  };
  const request = { domain: 'shop', descriptors: [descriptor], hitsAddend: 0 };
  const rest = { denied: false, deniedBy: [], end: undefined, holdIds: [], holdEnds: [] };
  return { timeMicros: 0, request, ...rest, ...more };
}

/** Returns a verdict in which these rules deny, and `met` rules do not. */
function verdict(tally: Tally, denying: readonly string[], met: readonly string[] = []): Verdict {
  const found = new Verdict();
  found.denied = denying.length > 0;
  for (const label of [...met, ...denying]) {
    found.uses.push({ row: tally.rowOf('shop', label), denied: denying.includes(label), over: false });
  }
  return found;
}

const counts = ({ requests, before, after, newlyDenied, newlyAllowed }: Row) =>
  [requests, before, after, newlyDenied, newlyAllowed] as const;

test('all rows add up, whatever the policies decide', () => {
  const random = seededRandom(1);
  const tally = new Tally('tenant');
  const some = (): string[] => ['a', 'b', 'c'].filter(() => random() < 0.3);
  for (let i = 0; i < 2000; i++) {
    const logged = some();
    const one = call(`tenant ${Math.floor(random() * 5)}`, {
      denied: random() < 0.3,
      ...(random() < 0.5 && { denied: logged.length > 0, deniedBy: logged }),
    });
    const before = random() < 0.5 ? verdict(tally, some(), ['a']) : undefined;
    tally.add(one, before, verdict(tally, some(), some()));
  }
  const rows = [
    tally.all,
    tally.unmatched,
    tally.withoutCaller,
    ...tally.rules.values(),
    ...tally.callers.values(),
  ];
  for (const { before, after, newlyDenied, newlyAllowed } of rows) {
    expect(before + newlyDenied - newlyAllowed).toBe(after);
  }
  const ofCallers = [...tally.callers.values()].map(counts);
  for (const [at, total] of counts(tally.all).entries()) {
    expect(ofCallers.reduce((sum, row) => sum + (row[at] as number), 0)).toBe(total);
  }
});

test('counts a request once for a rule that several of its descriptors meet', () => {
  const tally = new Tally(undefined);
  const after = verdict(tally, ['a'], ['a', 'b']);
  for (const use of after.uses) use.over = !use.denied;
  tally.add(call('x'), undefined, after);
  expect(counts(tally.rowOf('shop', 'a'))).toEqual([1, 0, 1, 1, 0]);
  expect(counts(tally.rowOf('shop', 'b'))).toEqual([1, 0, 0, 0, 0]);
  expect([tally.over, tally.rowOf('shop', 'a').over, tally.rowOf('shop', 'b').over]).toEqual([1, 0, 1]);
});

test('finds the rules that denied a request before', () => {
  const named = new Tally(undefined);
  named.add(call('x', { denied: true, deniedBy: ['a'] }), undefined, verdict(named, [], ['a', 'b']));
  expect(counts(named.rowOf('shop', 'a'))).toEqual([1, 1, 0, 0, 1]);
  expect([counts(named.rowOf('shop', 'b')), named.ambiguous]).toEqual([[1, 0, 0, 0, 0], 0]);
  const unnamed = new Tally(undefined);
  unnamed.add(call('x', { denied: true }), undefined, verdict(unnamed, ['b'], ['a']));
  expect(counts(unnamed.rowOf('shop', 'a'))).toEqual([1, 0, 0, 0, 0]);
  expect([counts(unnamed.rowOf('shop', 'b')), unnamed.ambiguous]).toEqual([[1, 1, 1, 0, 0], 1]);
});

test('remembers the rules that newly denied a caller', () => {
  const tally = new Tally('tenant');
  const deniedBefore = call('x', { denied: true });
  tally.add(deniedBefore, undefined, verdict(tally, ['a']));
  expect(tally.callers.get('x')?.newlyDeniedBy).toBeUndefined();
  for (const denying of [['b'], ['c', 'b'], []])
    tally.add(call('x'), undefined, verdict(tally, denying, ['a']));
  expect([...(tally.callers.get('x')?.newlyDeniedBy ?? [])].map(({ label }) => label)).toEqual(['b', 'c']);
});

test('adds up callers beyond the maximum, and requests without the key', () => {
  const tally = new Tally('tenant');
  const after = new Verdict();
  for (let i = 0; i < MAX_CALLERS + 2; i++) tally.add(call(`tenant ${i}`), undefined, after);
  tally.add(call('tenant 0'), undefined, after);
  expect([tally.callers.size, tally.otherCallers.requests]).toEqual([MAX_CALLERS, 2]);
  expect(tally.callers.get('tenant 0')?.requests).toBe(2);
  const other = new Tally('user');
  other.add(call('x'), undefined, after);
  expect([other.withoutCaller.requests, other.unmatched.requests]).toEqual([1, 1]);
});

test('takes the entries that derive has made first', () => {
  const tally = new Tally('tenant');
  const after = new Verdict();
  after.entries = [{ key: 'tenant', value: 'derived' }];
  tally.add(call('sent'), undefined, after);
  expect([...tally.callers.keys()]).toEqual(['derived']);
});

test('counts domains without a policy, and requests without a decision', () => {
  const tally = new Tally(undefined);
  const after = new Verdict();
  after.unknownDomain = 'store';
  after.undecided = 'limits';
  tally.add(call('x'), undefined, after);
  expect([[...tally.unknownDomains], [...tally.undecided]]).toEqual([[['store', 1]], [['limits', 1]]]);
});
