import { describe, expect, test } from '@jest/globals';
import { nearest } from '../../../src/runtime/nearest-name.js';

describe('the nearest name', () => {
  test.each([
    ['kye', ['value', 'key'], 'key'],
    ['rate_limt', ['rate_limit', 'rate_limits'], 'rate_limit'],
    ['ratelimit', ['rate_limits', 'rate_limit'], 'rate_limit'],
    ['Active', ['monitoring', 'active'], 'active'],
    ['seconds', ['second', 'minute'], 'second'],
    ['CONFG_PATH', ['CONFIG_TYPE', 'CONFIG_PATH'], 'CONFIG_PATH'],
    // If two names are equally near, the first one is returned.
    ['bat', ['cat', 'hat'], 'cat'],
  ])('%s of %j is %s', (name, candidates, found) => {
    expect(nearest(name, candidates)).toBe(found);
    expect(nearest(name, new Set(candidates))).toBe(found);
  });

  test.each([
    ['too different', 'foo', ['key', 'value']],
    ['no common letters', 'a', ['b']],
    ['an empty name', '', ['a', '']],
    ['only separators', '--', ['a', '__']],
    ['no candidates', 'key', []],
    ['a name that is too long', 'k'.repeat(61), ['k'.repeat(60)]],
    ['a candidate that is too long', 'k'.repeat(60), ['-'.repeat(80) + 'k'.repeat(60)]],
  ])('does not exist: %s', (_, name, candidates) => {
    expect(nearest(name, candidates)).toBeUndefined();
  });
});
