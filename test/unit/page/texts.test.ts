import { describe, expect, test } from '@jest/globals';
import { ENFORCED_WORDS } from '../../../src/cli/bucket/bucket-report.js';
import type { DumpedPolicies, DumpedPolicyRule } from '../../../src/page/text/dumped-policy.js';
import { entriesOfLines, noLookupReason } from '../../../src/page/text/entry-lines.js';
import {
  ENFORCED,
  futureSwitches,
  limitWords,
  nextSwitchAt,
  ruleMarks,
  switchWords,
} from '../../../src/page/text/limit-words.js';
import {
  countText,
  millisecondsText,
  perSecond,
  shareText,
  shortCount,
} from '../../../src/page/text/numbers.js';
import { overWords } from '../../../src/page/text/over-words.js';
import {
  fullLimitWords,
  planSourceWords,
  planWords,
  standardLimitWords,
} from '../../../src/page/text/plan-words.js';
import { briefText, cutText, visibleText } from '../../../src/page/text/shown-text.js';
import { relativeText, shortUtcText, spanText, utcText } from '../../../src/page/text/times.js';
import { dumpedRule } from '../../support/page/dumped-rule.js';

describe('numbers', () => {
  test.each([
    [0, '0'],
    [0.001, '<0.01'],
    [0.05, '0.05'],
    [1, '1'],
    [12.34, '12.3'],
    [1234.5, '1,235'],
    [123_456, '123k'],
  ])('%d per second is %s', (rate, text) => expect(perSecond(rate)).toBe(text));

  test('counts, shares and milliseconds', () => {
    expect([countText(1234567), shortCount(9999), shortCount(123456)]).toEqual([
      '1,234,567',
      '9,999',
      '123k',
    ]);
    expect([shareText(0.4), shareText(1), shareText(12)]).toEqual(['40%', '100%', 'over 10 times']);
    expect([millisecondsText(0.42), millisecondsText(12.6)]).toEqual(['0.4 ms', '13 ms']);
  });
});

describe('times', () => {
  test.each([
    [0, '0 s'],
    [0.04, '0.1 s'],
    [9.2, '9.2 s'],
    [42, '42 s'],
    [598, '9 min 58 s'],
    [3600, '1 h'],
    [18_240, '5 h 4 min'],
    [266_400, '3 d 2 h'],
  ])('%d seconds are %s', (span, text) => expect(spanText(span)).toBe(text));

  test.each([
    [101, 'just now'],
    [40, '1 minute ago'],
    [145, 'in 45 seconds'],
    [100 + 90 * 60, 'in 1 hour'],
    [100 + 47 * 3600, 'in 47 hours'],
    [100 + 6.5 * 86_400, 'in 6 days'],
  ])('%d is %s from 100 on', (seconds, text) => expect(relativeText(seconds, 100)).toBe(text));

  test('UTC', () => {
    expect(utcText(1_800_000_000.7)).toBe('2027-01-15 08:00:00 UTC');
    expect(shortUtcText(1_800_000_000)).toBe('2027-01-15 08:00 UTC');
    expect(shortUtcText(1_800_000_001)).toBe('2027-01-15 08:00:01 UTC');
  });
});

describe('texts from callers', () => {
  test('invisible characters are escaped', () => {
    expect(visibleText('a\nb\t\u0000\u202ec\u2066\u200b')).toBe('a\\nb\\t\\u{0}\\u{202e}c\\u{2066}\\u{200b}');
    expect(visibleText('héllo שלום 👩‍👩‍👧 <b>')).toBe('héllo שלום 👩‍👩‍👧 <b>');
    expect(visibleText('\ud800')).toBe('\\u{d800}');
  });

  test('long texts are truncated between characters', () => {
    expect(cutText('abcdef', 6)).toBe('abcdef');
    expect(cutText('abcdefg', 6)).toBe('abcde…');
    expect(cutText('abcd😀fg', 6)).toBe('abcd…');
    expect(briefText(`\u202e${'x'.repeat(500)}`)).toHaveLength(8 + 158 + 1);
  });
});

describe('entries', () => {
  test('are parsed from lines', () => {
    expect(entriesOfLines('tenant=acme\r\n\n path=/a=b ')).toEqual([
      { key: 'tenant', value: 'acme' },
      { key: 'path', value: '/a=b ' },
    ]);
    expect(entriesOfLines('a=b\nsecret')).toBe('Line 2 does not have the form key=value.');
    expect(entriesOfLines(' \n')).toBe('Enter at least one line of the form key=value.');
  });

  test('that are secret or truncated do not identify a bucket', () => {
    expect(noLookupReason([{ key: 'tenant', value: 'acme' }])).toBeUndefined();
    expect(noLookupReason([{ key: 'k', value: '[redacted sha256:0123abcd]' }])).toMatch(/contains a secret/);
    expect(noLookupReason([{ key: 'k', value: 'xxx…' }])).toMatch(/only the beginning of long values/);
    expect(noLookupReason([])).toBe('This bucket has no link because it has no entries.');
  });
});

describe('limits and phases in words', () => {
  test.each([
    [{ unlimited: true }, 'unlimited'],
    [
      { token_bucket: { max_tokens: 1000, tokens_per_fill: 1, fill_interval: '1s' } },
      '1,000 tokens, 1 more every 1s',
    ],
    [
      { token_bucket: { max_tokens: 1, tokens_per_fill: 1, fill_interval: '5m' }, max_debt: 10 },
      '1 token, 1 more every 5m, debt up to 10',
    ],
    [{ unit: 'hour', requests_per_unit: 5 }, '5 per hour'],
    [{ concurrency: { max: 1000, expires_after: '1m' } }, '1,000 concurrent requests, expires after 1m'],
    [
      { concurrency: { max: 1, expires_after: '1m', retry_after: '5s' } },
      '1 concurrent request, expires after 1m, retry after 5s',
    ],
    [
      {
        unit: 'hour',
        requests_per_unit: 5,
        hold: { from: 'first_call', expires_after: '10m', unknown: 'free' as const, pair: 'token' as const },
        max_debt: 0,
      },
      '5 per hour, holds the hits of the first call, expires after 10m, frees an unknown use',
    ],
    [
      {
        token_bucket: { max_tokens: 9000, tokens_per_fill: 1, fill_interval: '1s' },
        hold: { amount: 5000, expires_after: '10m', unknown: 'keep' as const, pair: 'oldest' as const },
        max_debt: 9000,
      },
      '9,000 tokens, 1 more every 1s, debt up to 9,000, holds 5,000 hits, expires after 10m, ' +
        'ends settle the oldest hold',
    ],
    [{ unit: 'minute', requests_per_unit: 5, unit_multiplier: 10 }, '5 per 10 minutes'],
    [
      { unit: 'month', requests_per_unit: 9, calendar: 'Europe/Berlin' },
      '9 per month in the time zone Europe/Berlin',
    ],
  ])('%j', (limit, words) => expect(limitWords(limit)).toBe(words));

  test('a schedule shows future phases', () => {
    const phase = {
      now: 'monitoring',
      grace_period: '2026-12-01T00:00:00.000Z',
      active: '2026-12-08T12:30:00.000Z',
    };
    const now = Date.parse('2026-11-25T00:00:00Z') / 1000;
    expect(futureSwitches(phase, now).map(switchWords)).toEqual([
      'grace period from 2026-12-01 00:00 UTC',
      'denies from 2026-12-08 12:30 UTC',
    ]);
    expect(futureSwitches(phase, now + 10 * 86_400)).toMatchObject([{ to: 'active' }]);
    expect(futureSwitches({ now: 'active' }, now)).toEqual([]);
  });

  test('the next change is the earliest future change of all domains and rules', () => {
    const policies = (ofDomain: string, ofRule: string) => {
      const rules = [{ phase: { now: 'active' } }, { phase: { now: 'grace_period', active: ofRule } }];
      const policy = { phase: { now: 'monitoring', active: ofDomain }, rules };
      return { domains: [{ domain: 'absent' }, { domain: 'shop', policy }] } as unknown as DumpedPolicies;
    };
    const [early, late] = ['2026-12-01T00:00:00.000Z', '2026-12-02T00:00:00.000Z'];
    const at = Date.parse(early) / 1000;
    expect(nextSwitchAt(policies(early, late), at - 1)).toBe(at);
    expect(nextSwitchAt(policies(late, early), at - 1)).toBe(at);
    expect(nextSwitchAt(policies(late, early), at)).toBe(at + 86_400);
    expect(nextSwitchAt(policies(early, late), at + 86_400)).toBe(Number.POSITIVE_INFINITY);
  });

  test('labels show other properties', () => {
    expect(ruleMarks(dumpedRule('tenant', ['tenant']))).toEqual([]);
    const rule = dumpedRule('tenant', ['tenant'], {
      plan_values: { max_tokens: 'burst' },
      on_over: {},
      // biome-ignore lint/suspicious/noThenProperty: the name of the key in policies
      then: 'credits',
      pays_after: ['free', 'paid'],
      shadow_mode: true,
      quota_mode: true,
      enforce_percent: 25,
      replaces: ['a'],
    });
    expect(ruleMarks(rule)).toEqual([
      'varies by plan',
      'soft limit: denies no requests',
      'then credits',
      'pays after free, paid',
      'shadow mode: not enforced',
      'quota: denies only if all other quotas also deny',
      '25% of denials enforced',
      'replaces a',
    ]);
  });

  const over = (more: Partial<DumpedPolicyRule>): string => overWords(dumpedRule('a', ['a'], more));
  const marked = { request_headers: [{ 'x-over': 'a' }, { 'x-b': 'c' }], metadata: { model: 'small' } };
  const observed = 'Requests over the limit are allowed, and counted as “would be denied”.';
  test.each<[Partial<DumpedPolicyRule>, string]>([
    [{}, 'Requests over the limit are denied.'],
    [{ phase: { now: 'monitoring' } }, observed],
    [{ phase: { now: 'grace_period' } }, observed],
    [{ shadow_mode: true }, observed],
    [{ enforce_percent: 0 }, observed],
    [
      { enforce_percent: 25 },
      'weir denies 25% of the requests over the limit. Other requests are allowed, and counted as “would be denied”.',
    ],
    [{ quota_mode: true }, 'Requests over the limit are denied if all other quotas also deny.'],
    [{ limit: { unlimited: true } }, 'weir counts no requests, and denies none.'],
    [{ on_over: {} }, 'Requests over this soft limit pass.'],
    [
      { on_over: marked },
      'Requests over this soft limit pass, with the header x-over: a, the header x-b: c ' +
        'and the metadata {"model":"small"}.',
    ],
    [
      { on_over: { metadata: marked.metadata }, enforce_percent: 50 },
      'Requests over this soft limit pass, with the metadata {"model":"small"} for 50% of them.',
    ],
    [{ on_over: marked, phase: { now: 'monitoring' } }, 'Requests over this soft limit pass without marks.'],
    // biome-ignore lint/suspicious/noThenProperty: the name of the key in policies
    [{ then: 'credits\u202e' }, 'Requests over the limit take from credits\\u{202e} instead.'],
  ])('over the limit: %j', (more, words) => expect(over(more)).toBe(words));

  const limit = { token_bucket: { max_tokens: 5, tokens_per_fill: 1, fill_interval: '1s' } };
  const values = { max_tokens: 'burst', fill_interval: 'interval' };
  const rest =
    'max_tokens is the plan value burst, fill_interval is the plan value interval. ' +
    'A row can also block a customer, remove the limit, or set its phase.';
  test.each<[string | null, string, string]>([
    [null, '5 tokens, 1 more every 1s', '5 tokens, 1 more every 1s, for customers without a row.'],
    ['unlimited', 'unlimited', 'unlimited, for customers without a row.'],
    ['blocked', 'blocked', 'blocked, for customers without a row.'],
    [
      'phase grace_period',
      '5 tokens, 1 more every 1s',
      '5 tokens, 1 more every 1s, for customers without a row, in the grace period phase.',
    ],
  ])('a limit with values from plans, whose default plan is %j', (standard, brief, full) => {
    const rule = { limit, plan_values: values, without_row: standard };
    expect([standardLimitWords(rule), fullLimitWords(rule)]).toEqual([brief, `${full} ${rest}`]);
  });

  test('a limit without values from plans', () => {
    const rule = { limit, plan_values: null, without_row: null };
    expect(fullLimitWords(rule)).toBe('5 tokens, 1 more every 1s');
  });

  test('plans and their source', () => {
    expect(planWords('free', { burst: '20', unlimited: 'true' })).toBe('free: burst 20, unlimited');
    const plans = { by: 'tenant', from: 'a.csv', default: 'free', define: {}, rows: 1, refused: 2 };
    expect(planSourceWords(plans)).toBe('by tenant, 1 row of a.csv, default plan free');
    expect(planSourceWords({ ...plans, from: null, default: null, rows: 3 })).toBe(
      'by tenant, 3 plans, no default plan',
    );
  });
});

test('enforcement is shown with the words of weir bucket', () => {
  expect(ENFORCED).toEqual(ENFORCED_WORDS);
});
