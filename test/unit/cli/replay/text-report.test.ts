import { expect, test } from '@jest/globals';
import { textReport } from '../../../../src/cli/replay/text-report.js';
import { columnsOf } from '../../../../src/cli/screen/columns.js';
import { group, interval, rule, sampleReport } from '../../../support/replay/sample-report.js';

const lines = (width?: number, report = sampleReport()): readonly string[] =>
  textReport(report, width).split('\n');

test('the report begins with the effect of the change', () => {
  expect(lines().slice(0, 5).join(' ')).toBe(
    '12 of 240 tenants would lose requests: acme 1,204 of 9,000 (13%), globex 310–328 of 8,100 (3.8–4%), ' +
      'tenant-0 14 of 2,000 (0.7%), and 9 more. 214 requests that were denied would be allowed. Requests over a ' +
      'limit that did not deny them, because of its phase (see --as-active), shadow mode, percentage or on_over: ' +
      'tenant/path=/export 41 of 1,200.',
  );
});

test('the tables show every rule and group, aligned', () => {
  const text = textReport(sampleReport());
  expect(text).toContain(`
Denied requests before and after the change, by rule:
RULE                 REQUESTS  BEFORE        AFTER  NEWLY DENIED     SHARE  NEWLY ALLOWED  PEAK USE
tenant                 90,000       0  1,654–1,672   1,654–1,672  1.8–1.9%              0      310%
tenant/path=/export     1,200       0            0             0        0%              0         –
(all requests)         90,000     310  1,750–1,768   1,654–1,672  1.8–1.9%            214         –

RULE                 PEAK/S  LONGEST          FIRST DENIED           LAST DENIED
tenant                   90    9m58s  2026-11-25T09:00:12Z  2026-11-25T20:03:59Z
tenant/path=/export       2        –                     –                     –
(all requests)           88    9m58s  2026-11-25T09:00:12Z  2026-11-25T20:03:59Z
`);
  expect(text).toContain('\nglobex       8,100       0  310–328       310–328  3.8–4%  ');
  expect(text).toContain('\nand 226 more\n');
  expect(text).toContain(`
RULE                 DENIES NONE  AT MOST 0.1%  AT MOST 1%  LIMIT
tenant                       420           310         180  100 per minute
`);
});

test('the report ends with what could not be read, and notes', () => {
  expect(textReport(sampleReport()).split('\n\n').slice(-2).join('\n')).toBe(
    `Read 100,000 lines from access.log (Envoy's default format): 99,990 requests from
2026-11-25T00:00:03.120Z to 2026-11-25T23:59:58.004Z.
9,990 requests meet no limit.
3 requests came too late to be sorted by time; weir decided them on arrival.
2 requests have a time more than a week from all others; weir decided them at the time of the
request before.
10 lines could not be read, because each one is not JSON, for example:
  {"start_time":"2026-11-25T
- Callers are assumed not to react to denials.
`,
  );
});

test('the notes say what candidates would have done', () => {
  const candidates = [
    { domain: 'shop', rule: 'tenant', requests: 1200, denied: 31, newlyDenied: 12, newlyAllowed: 1 },
  ];
  expect(textReport(sampleReport({ candidates }))).toContain(`
- The candidate of tenant would deny 31 of 1,200 requests. It would newly deny 12, and newly allow
  1.
`);
});

test('a report without rules, groups and notes has no empty tables', () => {
  const { groups: _, ...report } = sampleReport({ rules: [], notes: [] });
  const text = textReport(report);
  expect(text).not.toMatch(/RULE|TENANT|\n\n\n|- /);
});

test.each([70, 80, undefined, 120, 200])('every table fits a terminal of %p columns', (width) => {
  const name = `\u202e漢字${'x'.repeat(10_000)}\n`;
  const groups = { by: name, count: 1, affected: interval(1), shown: [group(name, 5, interval(1))] };
  const report = sampleReport({ groups, rules: [rule({ rule: name })] });
  const tooWide = lines(width, report).filter((line) => columnsOf(line) > (width ?? 100));
  // Words without spaces are not split.
  expect(tooWide.filter((line) => !line.includes('xxxx'))).toEqual([]);
  expect(textReport(report, width)).not.toMatch(/\u202e/);
});

test.each([60, 80, 100, 200])('a terminal of %d columns shows all columns', (width) => {
  const headings = lines(width).filter((line) => line.startsWith('TENANT'));
  const shown = headings.flatMap((line) => line.split(/ {2,}/).slice(1));
  expect(shown).toHaveLength(11);
  expect([shown[0], shown.at(-1)]).toEqual(['REQUESTS', 'LAST DENIED']);
  expect(headings).toHaveLength(width === 200 ? 1 : width === 60 ? 3 : 2);
});

test('the names of long rules keep their ends', () => {
  const path = `${'httproute/'.repeat(9)}tenant`;
  const report = sampleReport({ rules: [rule({ rule: `${path}[soft]` }), rule({ rule: `${path}[hard]` })] });
  const names = lines(undefined, report).filter((line) => line.startsWith('…'));
  expect(new Set(names.map((line) => /\[\w+\]/.exec(line)?.[0]))).toEqual(new Set(['[soft]', '[hard]']));
});

test('rules of several domains are shown with their domains', () => {
  const text = textReport(sampleReport({ rules: [rule(), rule({ domain: 'api' })] }));
  expect(text).toMatch(/^shop: tenant /m);
  expect(text).toMatch(/^api: tenant /m);
});

test('a sample and many files are stated', () => {
  const { log } = sampleReport();
  const files = ['a.log', 'b.log', 'c.log', 'd.log', 'e.log'];
  const text = textReport(sampleReport({ log: { ...log, files, sample: 0.1 } }));
  expect(text).toContain('Read 100,000 lines from a.log, b.log, c.log and 2 more (');
  expect(text).toContain('The log is a sample of about 1 in 10 requests.');
});
