import { describe, expect, test } from '@jest/globals';
import { compileGoRegExp, GoRegExp } from '../../../src/telemetry/go-regexp.js';
import { defaultMapping, Mapper } from '../../../src/telemetry/mapping/mapper.js';
import { mogrify } from '../../../src/telemetry/statsd/dogstatsd-udp.js';

const PREFIX = 'ratelimit.service.rate_limit.';

describe('regular expressions of Go', () => {
  test.each<[string, string, (string | undefined)[] | undefined]>([
    ['^a\\.(.*)$', 'a.b', ['a.b', 'b']],
    ['(?P<domain>[^.]+)\\.x', 'd.x', ['d.x', 'd']],
    ['(?i)ABC', 'abc', ['abc']],
    ['(?s)a.b', 'a\nb', ['a\nb']],
    ['(?im)^ABC$', 'x\nabc', ['abc']],
    ['a\\-b\\_\\:', 'a-b_:', ['a-b_:']],
    ['[a\\-c]+', 'a-cb', ['a-c']],
    ['[[:alpha:]_]+', '1ab_2', ['ab_']],
    ['[[:digit:][:punct:]]+', 'a1.', ['1.']],
    ['\\Aab\\z', 'ab', ['ab']],
    ['\\Aab\\z', 'ab\n', undefined],
    ['\\Qa.b\\E+', 'a.bb', ['a.bb']],
    ['\\Qa.b', 'axb', undefined],
    ['a{2}', 'aa', ['aa']],
    ['a(?i)b', 'aB', ['aB']],
    ['a(?i)b', 'AB', undefined],
    ['[]a]+', ']a', [']a']],
    ['[[:^alpha:]]+', 'a1.b', ['1.']],
    ['\\x{61}+', 'aa', ['aa']],
    ['\\pN+', 'a١2', ['١2']],
    ['(?U)a+', 'aa', ['a']],
    ['a$', 'a\n', undefined],
    ['\\s', '\v', undefined],
    ['(a)|(b)', 'b', ['b', undefined, 'b']],
  ])('%j on %j', (pattern, text, groups) => {
    const compiled = compileGoRegExp(pattern);
    expect(compiled).toBeInstanceOf(GoRegExp);
    const match = (compiled as GoRegExp).exec(text);
    expect(match === null ? undefined : [...match]).toEqual(groups);
  });

  test.each(['(', '[', '[[:nothing:]]', 'a**', '(?=a)', '(?<!a)b', '(a)\\1', '\\C', 'a{1001}'])(
    '%j is refused with a sentence',
    (pattern) => {
      expect(typeof compileGoRegExp(pattern)).toBe('string');
    },
  );
});

describe('a pattern', () => {
  test.each([
    ['^ratelimit\\.service\\.rate_limit\\.(.*)\\.(.*)\\.(.*)\\.(.*)\\.total_hits$', '.'.repeat(512)],
    ['^ratelimit\\.service\\.rate_limit\\.(([a-z]+)\\.?)*$', `${'x'.repeat(60)}!`],
    ['^ratelimit\\.service\\.rate_limit\\.(x|xx)*$', `${'x'.repeat(60)}!`],
    ['(.*)\\.(.*)\\.(.*)\\.(.*)\\.x', '.'.repeat(100_000)],
  ])(
    '%s, which another engine tries for minutes, is held against a hostile text at once',
    (source, hostile) => {
      const pattern = new GoRegExp(source);
      for (let call = 0; call < 10; call++) expect(pattern.exec(PREFIX + hostile)).toBeNull();
    },
  );

  test('that is expensive for some strings still matches other strings', () => {
    const pattern = new GoRegExp('^(?P<first>.*)\\.(.*)\\.(.*)\\.(.*)\\.(.*)\\.total_hits$');
    for (const part of ['a', 'b'.repeat(200), '.'.repeat(5000)]) {
      const found = pattern.exec(`${part}.1.2.3.4.total_hits`);
      expect(found?.groups).toMatchObject({ first: part });
      expect([...(found ?? [])].slice(1)).toEqual([part, '1', '2', '3', '4']);
    }
  });
});

test('mogrifiers and mappings continue with the rule after an expensive one', () => {
  const pattern = new GoRegExp('^(.*)\\.(.*)\\.(.*)\\.(.*)\\.(.*)\\.(.*)\\.none$');
  const next = new GoRegExp('^ratelimit');
  const hostile = PREFIX + '.'.repeat(512);
  const mogrifiers = [
    { pattern, name: 'slow', tags: [] },
    { pattern: next, name: 'next', tags: [] },
  ];
  expect(mogrify(mogrifiers, hostile).name).toBe('next');

  const mapping = defaultMapping(false);
  const [rule] = mapping.rules;
  if (rule === undefined) throw new Error('no rule');
  const rules = [
    { ...rule, match: pattern, name: 'slow' },
    { ...rule, match: next, name: 'next' },
  ];
  expect(new Mapper({ ...mapping, rules }).map(hostile, 'counter')?.name).toBe('next');
});
