import { expect, test } from '@jest/globals';
import {
  type CountedGroups,
  checkGates,
  type Gate,
  gateGroups,
  gateResultText,
  parseGate,
  worstVerdict,
} from '../../../../src/replay/report/gates.js';
import { hideValues, valueHider } from '../../../../src/replay/report/hide-values.js';
import type { GateReport, ReplayReport } from '../../../../src/replay/report/report.js';
import { group, interval, rule, sampleReport, total } from '../../../support/replay/sample-report.js';

function gate(text: string): Gate {
  const parsed = parseGate(text);
  if (typeof parsed === 'string') throw new Error(parsed);
  return parsed;
}

/** Returns the groups of a report as they are counted. */
function groupsOf({ groups }: ReplayReport, isComplete = true): readonly CountedGroups[] {
  if (groups === undefined) return [];
  const losses = new Map(groups.shown.map((each) => [each.value, each]));
  return [{ key: groups.by, isComplete, lossOf: (value) => losses.get(value), losses: () => losses }];
}

function check(text: string, report: ReplayReport = sampleReport(), isComplete = true): GateReport {
  return checkGates([gate(text)], report, groupsOf(report, isComplete))[0] as GateReport;
}

function resultOf(...args: Parameters<typeof check>): string {
  const result = check(...args);
  return `${result.verdict}: ${gateResultText(result)}`;
}

test.each<[string, Gate]>([
  ['0', { bound: '0', unit: 'requests', most: 0 }],
  ['0.1%', { bound: '0.1%', unit: 'share', most: 0.001 }],
  ['tenant=acme:12', { group: { key: 'tenant', value: 'acme' }, bound: '12', unit: 'requests', most: 12 }],
  ['id=a=b:c:5%', { group: { key: 'id', value: 'a=b:c' }, bound: '5%', unit: 'share', most: 0.05 }],
  ['tenant=:0', { group: { key: 'tenant', value: '' }, bound: '0', unit: 'requests', most: 0 }],
])('%s is a gate', (text, expected) => {
  expect(parseGate(text)).toEqual(expected);
});

test.each([
  ['', 'the bound is missing'],
  ['tenant=acme', "'tenant=acme' is not a number of requests or a percentage"],
  ['tenant=acme:', 'the bound is missing'],
  ['acme:0', "'acme:0' is not a number of requests or a percentage"],
  ['-1', "'-1' is not a number of requests or a percentage"],
  ['1.5', "'1.5' is not a whole number of requests"],
  ['101%', "'101%' is more than 100%"],
  ['many', "'many' is not a number of requests or a percentage"],
])('%j is not a gate', (text, problem) => {
  expect(parseGate(text)).toContain(`: ${problem}. Examples: 0, 0.1%, tenant=acme:0`);
});

test.each(['0.07', '0.12', '0.29', '0.7', '0.94', '33.3'])(
  'exactly %s%% of the requests passes',
  (percent) => {
    const requests = 10_000;
    const allowed = Math.round(requests * (Number(percent) / 100));
    const verdictOf = (denied: number) =>
      check(`${percent}%`, sampleReport({ total: total(requests, { newlyDenied: interval(denied) }) }))
        .verdict;
    expect([verdictOf(allowed), verdictOf(allowed + 1)]).toEqual(['passed', 'failed']);
  },
);

test('groups are counted for --by, and for the keys of gates', () => {
  const gates = ['0', 'tenant=acme:0', 'tenant=zoo:0', 'plan=*:0', 'plan=free:1'].map(gate);
  const tenants = ['tenant', new Set(['acme', 'zoo'])] as const;
  expect([...gateGroups(gates, undefined)]).toEqual([tenants, ['plan', undefined]]);
  expect([...gateGroups(gates, 'path')]).toEqual([['path', undefined], tenants, ['plan', undefined]]);
  expect([...gateGroups(gates, 'tenant')]).toEqual([
    ['tenant', undefined],
    ['plan', undefined],
  ]);
});

test('a failed gate names the first offenders', () => {
  expect(resultOf('0')).toBe(
    'failed: 1,654–1,672 of 90,000 requests (1.8–1.9%) would be newly denied: ' +
      'tenant=acme 1,204 of 9,000 (13%), tenant=globex 310–328 of 8,100 (3.8–4%), ' +
      'tenant=tenant-0 14 of 2,000 (0.7%), tenant=tenant-1 14 of 1,999 (0.7%), ' +
      'tenant=tenant-2 14 of 1,998 (0.7%)',
  );
  expect(check('tenant=acme:1%')).toEqual({
    name: 'max-newly-denied',
    group: { key: 'tenant', value: 'acme' },
    bound: '1%',
    verdict: 'failed',
    requests: 9000,
    newlyDenied: interval(1204),
    offenders: [{ group: { key: 'tenant', value: 'acme' }, requests: 9000, newlyDenied: interval(1204) }],
  });
});

test('without groups, a failed gate names rules', () => {
  const { groups: _, ...report } = sampleReport();
  expect(resultOf('1%', report)).toMatch(/newly denied: rule tenant in domain shop 1,654–1,672 of 90,000 \(/);
});

test('* applies a bound to each value', () => {
  expect(resultOf('tenant=*:1203')).toMatch(
    /^failed: more requests of 1 of \d+ tenants would be newly denied: tenant=acme 1,204 of 9,000 \(13%\)$/,
  );
  expect(resultOf('tenant=*:1204')).toMatch(
    /^passed: more requests of 0 of \d+ tenants would be newly denied; requests over/,
  );
  expect(check('tenant=*:1204').newlyDenied).toEqual(interval(1204));
  const groups = {
    by: 'tenant',
    count: 3,
    affected: interval(2),
    shown: [
      group('large', 1000, interval(5)),
      group('small', 4, interval(2, 4)),
      group('calm', 4, interval(0)),
    ],
  };
  const report = sampleReport({ groups });
  expect(check('tenant=*:40%', report)).toMatchObject({ verdict: 'failed', requests: 4 });
  expect(resultOf('tenant=*:50%', report)).toBe(
    'undecided: more requests of 0–1 of 3 tenants would be newly denied, but the times in the log do not tell in ' +
      'which order they arrived',
  );
  expect(check('tenant=*:100%', report)).toMatchObject({ verdict: 'passed', values: { count: 3 } });
  expect(resultOf('tenant=*:100%', report, false)).toMatch(
    /^undecided: .* too many groups to count all of them$/,
  );
  expect(check('tenant=*:0', report, false).verdict).toBe('failed');
  expect(check('plan=*:0', report)).toMatchObject({ verdict: 'undecided', requests: 0 });
});

test.each([
  ['1672', 'passed'],
  ['1671', 'undecided'],
  ['1653', 'failed'],
  ['1.9%', 'passed'],
  ['1.85%', 'undecided'],
  ['1.8%', 'failed'],
  ['tenant=acme:1204', 'passed'],
  ['tenant=acme:1203', 'failed'],
  ['tenant=globex:4%', 'undecided'],
  ['tenant=calm:0', 'passed'],
])('with the bound %s, the gate has %s', (text, verdict) => {
  expect(check(text).verdict).toBe(verdict);
});

test('a group that is not in the log is undecided, because its name may be wrong', () => {
  expect(resultOf('tenant=acmee:0')).toBe(
    'undecided: the log has no request of this group that a limit applies to',
  );
  expect(check('0', sampleReport({ total: total(0) })).verdict).toBe('undecided');
});

test('a passed gate says that limits which do not deny were exceeded', () => {
  const remark = '; requests over limits that do not deny are not counted (see --as-active)';
  expect(resultOf('1672').endsWith(remark)).toBe(true);
  expect(check('0').remark).toBeUndefined();
  expect(check('1672', sampleReport({ rules: [rule()] })).remark).toBeUndefined();
});

test('a sample decides nothing', () => {
  const { log } = sampleReport();
  const report = sampleReport({ log: { ...log, sample: 0.1 } });
  expect(resultOf('5%', report)).toMatch(/^undecided: .*, but the log is only a sample of the requests$/);
  expect(check('0', report)).toMatchObject({ verdict: 'undecided', offenders: [] });
});

test('a log that is not in the order of time decides nothing', () => {
  const { log } = sampleReport();
  const late = (count: number) => sampleReport({ log: { ...log, requests: 1000, late: count } });
  expect(resultOf('0', late(11))).toMatch(/^undecided: .*, but too many requests came too late/);
  expect(check('0', late(10)).verdict).toBe('failed');
});

test('a partial report decides only that a number of requests is exceeded', () => {
  const report = sampleReport({ partial: 'the replay was interrupted' });
  expect(check('0', report).verdict).toBe('failed');
  expect(check('0%', report).verdict).toBe('undecided');
  expect(resultOf('9999', report)).toMatch(
    /covers only part of the log, because the replay was interrupted$/,
  );
});

test('the worst gate decides', () => {
  const verdict = (...texts: readonly string[]) => worstVerdict(texts.map((text) => check(text)));
  expect(verdict()).toBe('passed');
  expect(verdict('5%', 'tenant=calm:0')).toBe('passed');
  expect(verdict('5%', 'tenant=nobody:0')).toBe('undecided');
  expect(verdict('tenant=nobody:0', '0', '5%')).toBe('failed');
});

test('results of gates do not show hidden values', () => {
  const hide = valueHider(new Set(['tenant']), false);
  const gates = [check('tenant=acme:0'), check('0'), check('tenant=*:0')];
  const redacted = hideValues(sampleReport({ gates }), hide, false).gates;
  expect(JSON.stringify(redacted)).not.toContain('acme');
  expect(redacted[0]?.group?.value).toMatch(/^\[redacted sha256:[\da-f]{8}\]$/);
  expect(redacted[2]?.group?.value).toBe('*');

  const { groups: _, ...report } = sampleReport({ rules: [rule({ rule: 'tenant=acme' })] });
  const named = {
    ...report,
    gates: [check('1%', { ...report, rules: [rule({ rule: 'tenant=acme', newlyDenied: interval(9) })] })],
  };
  expect(JSON.stringify(named.gates)).toContain('acme');
  expect(JSON.stringify(hideValues(named, valueHider(new Set(), true), true).gates)).not.toContain('acme');
});
