import { describe, expect, test } from '@jest/globals';
import { nearest } from '../../src/nearest-name.js';

describe('the nearest name', () => {
  test.each([
    ['kye', ['value', 'key'], 'key'],
    ['rate_limt', ['rate_limit', 'rate_limits'], 'rate_limit'],
    ['ratelimit', ['rate_limits', 'rate_limit'], 'rate_limit'],
    ['Active', ['monitoring', 'active'], 'active'],
    ['seconds', ['second', 'minute'], 'second'],
    ['CONFG_PATH', ['CONFIG_TYPE', 'CONFIG_PATH'], 'CONFIG_PATH'],
    // Of two that are equally near the first.
    ['bat', ['cat', 'hat'], 'cat'],
  ])('%s of %j is %s', (name, candidates, found) => {
    expect(nearest(name, candidates)).toBe(found);
    expect(nearest(name, new Set(candidates))).toBe(found);
  });

  test.each([
    ['too different', 'foo', ['key', 'value']],
    ['nothing in common', 'a', ['b']],
    ['no name', '', ['a', '']],
    ['separators alone', '--', ['a', '__']],
    ['no candidates', 'key', []],
    ['too long to be looked at', 'k'.repeat(61), ['k'.repeat(60)]],
    ['a candidate that is too long', 'k'.repeat(60), ['-'.repeat(80) + 'k'.repeat(60)]],
  ])('there is none: %s', (_, name, candidates) => {
    expect(nearest(name, candidates)).toBeUndefined();
  });
});
