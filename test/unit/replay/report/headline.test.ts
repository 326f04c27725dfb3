import { expect, test } from '@jest/globals';
import { headline } from '../../../../src/replay/report/headline.js';
import { groupNoun, shownName, shownRule } from '../../../../src/replay/report/names.js';
import { durationText, intervalText, shareText } from '../../../../src/replay/report/numbers.js';
import { group, interval, sampleReport, total } from '../../../support/replay/sample-report.js';

test('the headline names the groups that would lose requests, the most affected first', () => {
  expect(headline(sampleReport())).toEqual([
    '12 of 240 tenants would lose requests: acme 1,204 of 9,000 (13%), globex 310–328 of 8,100 (3.8–4%), ' +
      'tenant-0 14 of 2,000 (0.7%), and 9 more.',
    '214 requests that were denied would be allowed.',
    'Requests over a limit that did not deny them, because of its phase (see --as-active), shadow mode, percentage ' +
      'or on_over: tenant/path=/export 41 of 1,200.',
  ]);
});

test('the headline says that nobody would lose requests', () => {
  const shown = [group('acme', 9000, interval(0))];
  const groups = { by: 'tenant', count: 1, affected: interval(0), shown };
  expect(headline(sampleReport({ groups, rules: [], total: total(9000) }))).toEqual([
    'None of 1 tenant would lose requests.',
  ]);
});

test('the number of affected groups may be an interval', () => {
  const shown = [group('acme', 10, interval(0, 2))];
  const groups = { by: 'tenant', count: 3, affected: interval(0, 1), shown };
  expect(headline(sampleReport({ groups, total: total(30) }))[0]).toBe(
    '0–1 of 3 tenants would lose requests: acme 0–2 of 10 (0–20%).',
  );
});

test('without groups, the headline counts requests', () => {
  const { groups: _, ...report } = sampleReport();
  expect(headline(report)[0]).toBe(
    'new.yaml would deny 1,654–1,672 of 90,000 requests (1.8–1.9%) that were allowed.',
  );
  expect(headline({ ...report, rules: [], total: total(10) })).toEqual([
    'new.yaml would not deny any request that was allowed.',
  ]);
});

test('the headline names what is missing', () => {
  const report = sampleReport({ partial: 'the replay was interrupted', rules: [], total: total(0) });
  expect(headline(report)).toEqual([
    'This report covers only part of the log, because the replay was interrupted.',
    'The log has no request that a limit of old.yaml or new.yaml applies to.',
  ]);
});

test('names from the log are escaped and cut', () => {
  expect(shownName('')).toBe('(empty)');
  expect(shownName('a\u202eb\n')).toBe('a\\u202eb\\u000a');
  expect(shownName('x'.repeat(40))).toBe('x'.repeat(40));
  expect(shownName('x'.repeat(10_000))).toBe(`${'x'.repeat(39)}…`);
  expect(shownName('🦊'.repeat(50))).toBe(`${'🦊'.repeat(39)}…`);
  expect(shownName(`${'🦊'.repeat(39)}${'x'.repeat(10)}`)).toBe(`${'🦊'.repeat(39)}…`);
});

test('the path of a rule keeps its end, and shows a value that is equal to its key once', () => {
  const route = 'httproute/shop/orders/rule/0/match/0/api_example_com';
  expect(shownRule(`${route}=${route}/rule-0-match-0[soft]`)).toBe(`${route}/rule-0-match-0[soft]`);
  expect(shownRule('a=a/b=c/d=d')).toBe('a/b=c/d');
  expect(shownRule(`${'x/'.repeat(100)}last[daily]`)).toMatch(/^….*x\/last\[daily\]$/);
  expect(shownRule('🦊'.repeat(200))).toBe(`…${'🦊'.repeat(99)}`);
});

test.each([
  [0, '0%'],
  [0.000_01, '<0.1%'],
  [0.038_27, '3.8%'],
  [0.1338, '13%'],
  [0.9996, '>99.9%'],
  [1, '100%'],
  [10, '1,000%'],
])('the share %d is shown as %s', (share, text) => {
  expect(shareText(share)).toBe(text);
});

test('an interval of one number is shown as the number', () => {
  expect([intervalText(interval(9, 12)), intervalText(interval(1204))]).toEqual(['9–12', '1,204']);
});

test.each([
  ['tenant', 'tenants'],
  ['company', 'companies'],
  ['key', 'keys'],
  ['address', 'addresses'],
  ['x-tenant', 'x-tenant values'],
])('several values of %s are called %s', (by, noun) => {
  expect(groupNoun({ key: by }, 2)).toBe(noun);
});

test('values of a header are called callers if the key of their entries is not a noun', () => {
  expect(groupNoun({ key: 'rule-0-match-0', source: 'x-tenant' }, 2)).toBe('callers (x-tenant)');
  expect(groupNoun({ key: 'tenant', source: 'x-tenant' }, 1)).toBe('tenant');
});

test.each([
  [0, '0 seconds'],
  [0.2, 'less than a second'],
  [1, '1 second'],
  [36.398, '37 seconds'],
  [598, '9 minutes 58 seconds'],
  [18_245, '5 hours 4 minutes'],
  [86_400, '1 day'],
])('%d seconds are shown as %s', (seconds, text) => {
  expect(durationText(seconds)).toBe(text);
});
