import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { type ChartData, chartData, periodsOf } from '../../../../src/replay/report/html/chart-data.js';
import { html } from '../../../../src/replay/report/html/html.js';
import { htmlReport } from '../../../../src/replay/report/html/html-report.js';
import {
  group,
  interval,
  rule,
  sampleReport,
  total,
  useSteps,
} from '../../../support/replay/sample-report.js';

/** Returns the text of a page for people: no markup, styles and scripts. */
function textOf(page: string): string {
  return page
    .replaceAll(/<(style|script)[\s\S]*?<\/\1>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll(/\s+/g, ' ');
}

function dataOf(page: string): ChartData {
  const [, text = ''] = /<script type="application\/json" id="chart-data">(.*?)<\/script>/.exec(page) ?? [];
  return JSON.parse(text) as ChartData;
}

test('text in markup is escaped for elements and attributes', () => {
  const text = `<b a="1" b='2'>&`;
  expect(
    html`<p title="${text}">${text}${html`<i>${1}</i>`}${[html`<u></u>`, html`<s></s>`]}</p>`.markup,
  ).toBe(
    '<p title="&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;">&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;' +
      '<i>1</i><u></u><s></s></p>',
  );
});

test('the page states the effect of the change', () => {
  const text = textOf(htmlReport(sampleReport()));
  expect(text).toContain('12 of 240 tenants would lose requests.');
  expect(text).toContain(
    'most affected would lose: acme 1,204 of 9,000 (13%), globex 310–328 of 8,100 (3.8–4%)',
  );
  expect(text).toContain('214 requests that were denied would be allowed.');
  expect(text).toContain('shadow mode, percentage or on_over: tenant/path=/export 41 of 1,200.');
  expect(text).not.toContain('would be denied.');
  expect(text).toContain('the 99,990 requests in the log of 25 November 2026, 00:00 to 23:59');
  expect(text).toContain('“Before” means the limits in old.yaml.');
  expect(text).toContain(
    'acme 9,000 0 1,204 13% 310% 9 minutes 58 seconds 09:00 to 09:37, 14:02 to 14:14, 20:01 to 20:04',
  );
  expect(text).toMatch(/shop: tenant 100 per minute 90,000 1,654–1,672 1.8–1.9% 12 of 240 420 310 180/);
  expect(text).toContain('Closest to a limit: next 92%.');
  expect(text).toContain('10 of 100,000 lines in the log could not be read.');
});

test('without denials, groups and rules, the page has only what is known', () => {
  const { groups: _, ...report } = sampleReport({
    rules: [],
    total: total(0),
    partial: 'the replay was interrupted',
  });
  const timeline = {
    start: '2026-11-25T00:00:00Z',
    stepSeconds: 60,
    requests: [],
    deniedBefore: [],
    deniedAfter: [],
  };
  const { first: _first, last: _last, ...log } = report.log;
  const page = htmlReport({ ...report, log, timeline, before: { kind: 'log', name: 'log' } });
  expect(textOf(page)).toContain('The log has no request that a limit of new.yaml applies to.');
  expect(textOf(page)).toContain('covers only part of the log, because the replay was interrupted.');
  expect(textOf(page)).toContain('“Before” means what the log says about each request.');
  expect(page).not.toContain('<canvas');
});

test('the page shows the results of gates', () => {
  const { total } = sampleReport();
  const gate = { name: 'max-newly-denied', bound: '9%', verdict: 'passed', offenders: [], ...total } as const;
  expect(textOf(htmlReport(sampleReport({ gates: [gate] })))).toMatch(
    /Bounds that were checked.*9%\s*passed\s*1,654–1,672 of 90,000 requests \(1\.8–1\.9%\) would be newly denied/s,
  );
  expect(textOf(htmlReport(sampleReport()))).not.toContain('Bounds that were checked');
});

test('the page runs only its own script, and connects to nothing', () => {
  const page = htmlReport(sampleReport());
  const [, policy = ''] = /content-security-policy" content="([^"]*)"/.exec(page) ?? [];
  const [, script = ''] = /<script type="module">([\s\S]*?)<\/script>/.exec(page) ?? [];
  const hash = createHash('sha256').update(script).digest('base64');
  expect(policy.replaceAll('&#39;', "'")).toContain(
    `default-src 'none'; script-src 'sha256-${hash}'; style-src`,
  );
  expect(page.replace(script, '')).not.toMatch(/https?:|src=|@import|url\(/);
  expect(script).toContain('Released under the MIT License');
});

test('hostile names are text, and are cut', () => {
  const names = [
    '</script><script>alert(1)</script>',
    '\u202egnihtyna',
    'n'.repeat(10_000),
    '"><img src=x>',
    '',
  ];
  const shown = names.map((name) => group(name, 10, interval(1), { deniedSteps: [0] }));
  const groups = { by: '<i>', count: 5, affected: interval(5), shown };
  const rules = names.map((name) => rule({ rule: name, domain: name, limit: name, use: useSteps([1]) }));
  const { log } = sampleReport();
  const page = htmlReport(
    sampleReport({
      groups,
      rules,
      after: { name: names[0] ?? '' },
      log: { ...log, files: names },
    }),
  );
  expect(page.match(/<script/g)).toHaveLength(2);
  expect(page.match(/<\/script/g)).toHaveLength(2);
  const [markup = ''] = page.split('<script type="module">');
  expect(markup).not.toMatch(/<img|<i>|[\u202a-\u202e]|n{101}/);
  expect(dataOf(page).affected?.names).toEqual([
    '</script><script>alert(1)</script>',
    '\\u202egnihtyna',
    `${'n'.repeat(39)}…`,
    '"><img src=x>',
    '(empty)',
  ]);
});

test('steps are added up until a chart has at most 240 points', () => {
  const { denials } = chartData(sampleReport());
  const { timeline } = sampleReport();
  expect([denials.step, denials.after.length, denials.seconds]).toEqual([360, 240, 86_400]);
  const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
  expect([sum(denials.before), sum(denials.after)]).toEqual([
    sum(timeline.deniedBefore),
    sum(timeline.deniedAfter),
  ]);
  expect(denials.labels[90]).toBe('25 November 2026, 09:00 to 09:06');
});

test.each([
  [
    '2026-11-25T00:00:00Z',
    60,
    1440,
    ['00:00', '03:00', '06:00', '09:00', '12:00', '15:00', '18:00', '21:00', '00:00'],
  ],
  ['2026-11-25T10:03:00Z', 60, 20, ['10:05', '10:10', '10:15', '10:20']],
  ['2026-11-25T10:00:58Z', 1, 9, ['10:01:00', '10:01:05']],
  [
    '2026-11-24T12:00:00Z',
    3600,
    84,
    ['12:00', '25 Nov', '12:00', '26 Nov', '12:00', '27 Nov', '12:00', '28 Nov'],
  ],
])('the time axis from %s, in steps of %d s, has round times', (start, stepSeconds, count, labels) => {
  const steps = Array.from({ length: count }, () => 0);
  const timeline = { start, stepSeconds, requests: steps, deniedBefore: steps, deniedAfter: steps };
  const { ticks, seconds } = chartData(sampleReport({ timeline })).denials;
  expect(ticks.map(({ label }) => label)).toEqual(labels);
  expect(seconds).toBe(count * stepSeconds);
});

test('adjacent steps are one period', () => {
  expect(periodsOf([])).toEqual([]);
  expect(periodsOf([1, 2, 3, 7, 9, 10])).toEqual([
    [1, 4],
    [7, 8],
    [9, 11],
  ]);
});

test('the chart of affected groups has the first ten that lose requests', () => {
  const { affected: chart } = chartData(sampleReport());
  expect(chart?.names).toHaveLength(10);
  expect(chart?.periods[0]).toEqual([0, 540 * 60, 577 * 60]);
  expect(chart?.labels[0]).toBe('25 November 2026, 09:00 to 09:37');
  const groups = { by: 'tenant', count: 1, affected: interval(0), shown: [group('calm', 5, interval(0))] };
  expect(chartData(sampleReport({ groups })).affected).toBeUndefined();
});

test('the steps of the use of a limit have names, and those above it are marked', () => {
  const [use] = chartData(sampleReport()).use;
  expect(use?.labels.slice(8)).toEqual([
    '80% to 90%',
    '90% to 100%',
    '100% to 150%',
    '150% to 200%',
    'over 200%',
  ]);
  expect([use?.ends.at(-2), use?.ends.at(-1), use?.over]).toEqual(['200%', 'more', 3]);
});
