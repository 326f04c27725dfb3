import { expect, test } from '@jest/globals';
import { checkGates, type Gate, gateProblem, parseGate } from '../../../../src/replay/report/gates.js';
import { hideValues, valueHider } from '../../../../src/replay/report/hide-values.js';
import type { ReplayReport } from '../../../../src/replay/report/report.js';
import { group, interval, sampleReport, total } from '../../../support/replay/sample-report.js';

const SHOWN = valueHider(new Set(), false);

function gate(text: string): Gate {
  const parsed = parseGate(text);
  if (typeof parsed === 'string') throw new Error(parsed);
  return parsed;
}

function check(text: string, report: ReplayReport = sampleReport()) {
  return checkGates([gate(text)], report, SHOWN);
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

test('a gate can name only groups of --by', () => {
  expect(gateProblem([gate('0'), gate('tenant=acme:0')], 'tenant')).toBeUndefined();
  expect(gateProblem([gate('tenant=acme:0')], undefined)).toBe(
    '--max-newly-denied tenant=…: the report has no groups by tenant. Set --by tenant',
  );
  expect(gateProblem([gate('tenant=acme:0')], 'path')).toMatch(/Set --by tenant instead of --by path$/);
});

test('a failed gate names the first offenders', () => {
  expect(check('0')).toEqual({
    verdict: 'failed',
    lines: [
      '--max-newly-denied 0: failed: 1,654–1,672 of 90,000 requests (1.8–1.9%) would be newly denied: ' +
        'tenant=acme 1,204 of 9,000 (13%), tenant=globex 310–328 of 8,100 (3.8–4%), ' +
        'tenant=tenant-0 14 of 2,000 (0.7%), tenant=tenant-1 14 of 1,999 (0.7%), ' +
        'tenant=tenant-2 14 of 1,998 (0.7%)',
    ],
  });
});

test('without groups, a failed gate names rules', () => {
  const { groups: _, ...report } = sampleReport();
  expect(check('1%', report).lines[0]).toMatch(
    /newly denied: rule tenant in domain shop 1,654–1,672 of 90,000 \(/,
  );
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
  expect(check('tenant=acmee:0')).toEqual({
    verdict: 'undecided',
    lines: [
      '--max-newly-denied tenant=acmee:0: undecided: the log has no request of tenant=acmee that a limit applies to',
    ],
  });
  expect(check('0', sampleReport({ total: total(0) })).verdict).toBe('undecided');
});

test('a sample decides nothing', () => {
  const { log } = sampleReport();
  const report = sampleReport({ log: { ...log, sample: 0.1 } });
  expect(check('5%', report).lines[0]).toMatch(
    /: undecided: .*, but the log is only a sample of the requests$/,
  );
  expect(check('0', report).verdict).toBe('undecided');
});

test('a partial report decides only that a number of requests is exceeded', () => {
  const report = sampleReport({ partial: 'the replay was interrupted' });
  expect(check('0', report).verdict).toBe('failed');
  expect(check('0%', report).verdict).toBe('undecided');
  expect(check('9999', report).lines[0]).toMatch(
    /covers only part of the log, because the replay was interrupted$/,
  );
});

test('the worst gate decides', () => {
  const verdict = (...texts: readonly string[]) => checkGates(texts.map(gate), sampleReport(), SHOWN).verdict;
  expect(verdict()).toBe('passed');
  expect(verdict('5%', 'tenant=calm:0')).toBe('passed');
  expect(verdict('5%', 'tenant=nobody:0')).toBe('undecided');
  expect(verdict('tenant=nobody:0', '0', '5%')).toBe('failed');
});

test('gates find groups whose values are hidden, and do not show the values', () => {
  const groups = {
    by: 'api_key',
    count: 1,
    affected: interval(1),
    shown: [group('s3cret', 10, interval(5))],
  };
  const shown = sampleReport({ groups });
  const redacted = checkGates([gate('api_key=s3cret:0')], hideValues(shown, SHOWN, false), SHOWN);
  expect(redacted.verdict).toBe('failed');
  expect(redacted.lines[0]).toMatch(
    /^--max-newly-denied api_key=\[redacted sha256:[\da-f]{8}\]:0: failed: 5 of 10 /,
  );

  const hide = valueHider(new Set(), true);
  const hashed = checkGates([gate('tenant=acme:0')], hideValues(sampleReport(), hide, true), hide);
  expect(hashed.verdict).toBe('failed');
  expect(hashed.lines[0]).not.toContain('acme');
});
