import { describe, expect, test } from '@jest/globals';
import { ENFORCED_WORDS } from '../../../src/cli/bucket/bucket.js';
import type { DumpedPolicies } from '../../../src/page/text/dumped-policy.js';
import { entriesOfLines, noLookupReason } from '../../../src/page/text/entry-lines.js';
import {
  countText,
  millisecondsText,
  perSecond,
  shareText,
  shortCount,
} from '../../../src/page/text/numbers.js';
import { ENFORCED, futureSwitches, nextSwitchAt, switchWords } from '../../../src/page/text/phases.js';
import { ruleKey } from '../../../src/page/text/rule-key.js';
import { briefText, cutText, visibleText } from '../../../src/page/text/shown-text.js';
import { relativeText, spanText, utcText } from '../../../src/page/text/times.js';

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

describe('phases in words', () => {
  test('a schedule shows future phases', () => {
    const phase = {
      now: 'monitoring',
      grace_period: '2026-12-01T00:00:00.000Z',
      active: '2026-12-08T12:30:00.000Z',
    };
    const now = Date.parse('2026-11-25T00:00:00Z') / 1000;
    expect(futureSwitches(phase, now).map(switchWords)).toEqual([
      'grace period from 2026-12-01 00:00:00 UTC',
      'denies from 2026-12-08 12:30:00 UTC',
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
});

test('enforcement is shown with the words of weir bucket', () => {
  expect(ENFORCED).toEqual(ENFORCED_WORDS);
});

test('all rules have different keys', () => {
  expect(ruleKey('a b', 'c')).not.toBe(ruleKey('a', 'b c'));
});
