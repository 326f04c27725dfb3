import { describe, expect, test } from '@jest/globals';
import { compileGoRegExp } from '../../../src/telemetry/go-regexp.js';

describe('regular expressions of Go', () => {
  test.each<[string, string, string[] | undefined]>([
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
  ])('%j on %j', (pattern, text, groups) => {
    const compiled = compileGoRegExp(pattern);
    expect(compiled).toBeInstanceOf(RegExp);
    const match = (compiled as RegExp).exec(text);
    expect(match === null ? undefined : [...match]).toEqual(groups);
  });

  test.each(['(', '[', 'a(?i)b', '[]a]', '[[:nothing:]]', '[[:^alpha:]]', '\\x{61}', '\\pN', 'a**', '(?U)a'])(
    '%j is refused with a sentence',
    (pattern) => {
      expect(typeof compileGoRegExp(pattern)).toBe('string');
    },
  );
});
