import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import {
  addressPart,
  divideKey,
  entriesKey,
  extendedKey,
  overrideKey,
  patternPart,
  textPart,
  valueInKey,
} from '../../../../src/policy/names/bucket-key.js';
import { entries } from '../../../support/policy/policies.js';

const hex = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('parts', () => {
  test('a string includes its length', () => {
    expect(textPart('acme')).toBe('4:acme');
    expect(textPart('')).toBe('0:');
    expect(textPart('3:abc')).toBe('5:3:abc');
  });

  test('a string over 128 bytes is its digest, counted in UTF-8', () => {
    expect(textPart('a'.repeat(128))).toBe(`128:${'a'.repeat(128)}`);
    expect(textPart('a'.repeat(129))).toBe(`#${hex('a'.repeat(129))}`);
    expect(textPart('ü'.repeat(64))).toBe(`64:${'ü'.repeat(64)}`);
    expect(textPart('ü'.repeat(65))).toBe(`#${hex('ü'.repeat(65))}`);
  });

  test('a digest that is sent as a value is not a digest part', () => {
    const long = 'a'.repeat(129);
    expect(textPart(`#${hex(long)}`)).toBe(`65:#${hex(long)}`);
  });

  test('a pattern has a mark', () => {
    expect(patternPart('*')).toBe('1**');
    expect(patternPart('files/*')).toBe('7*files/*');
    expect(patternPart(`${'a'.repeat(128)}*`)).toBe(`*${hex(`${'a'.repeat(128)}*`)}`);
  });
});

describe('keys', () => {
  test('contain the domain, then keys and values; the tag covers the domain and the first entry', () => {
    const { key, hashTagLength } = entriesKey(
      'open-api',
      entries('tenant=acme', 'resource_group=user-chats'),
    );
    expect(key).toBe('8:open-api6:tenant4:acme14:resource_group10:user-chats');
    expect(key.slice(0, hashTagLength)).toBe('8:open-api6:tenant4:acme');
  });

  test("of overrides differ from the rule's key and from each other", () => {
    const given = entriesKey('d', entries('tenant=acme'));
    expect(overrideKey(given, 'minute', 100)).toEqual({
      key: '1:d6:tenant4:acme!100/minute',
      hashTagLength: 17,
    });
    expect(overrideKey(given, 'minute', 10).key).toBe('1:d6:tenant4:acme!10/minute');
    expect(overrideKey(given, 'hour', 100).key).toBe('1:d6:tenant4:acme!100/hour');
  });
});

describe('a divided name', () => {
  const long = 'x'.repeat(129);
  const tag = '1:d6:tenant4:acme';
  test.each([
    ['', ''],
    ['~5:daily%60', '~5:daily%60'],
    [`${textPart(long)}${textPart(long)}%holds`, '%holds'],
    [`2:ip${addressPart('::1', false)}~c`, '~c'],
    [`2:ip${addressPart('::1', true)}2:ip@10*10.0.0.0/8%day/UTC`, '%day/UTC'],
    [`4:path^4*^/v14:path${patternPart('files/*')}4:path${patternPart(long)}~2`, '~2'],
    ['3:key6:x%60~2', ''],
  ])('has the tag of the first entry, and what follows the entries: %s', (rest, suffix) => {
    expect(divideKey(tag + rest)).toEqual({ hashTagLength: tag.length, suffix });
  });

  test('may have a digest instead of its entries', () => {
    const given = entries('tenant=acme', ...Array.from({ length: 9 }, (_, i) => `k${i}=${'v'.repeat(120)}`));
    const { key } = extendedKey(entriesKey('d', given), '~1%60');
    expect(divideKey(key)).toEqual({ hashTagLength: tag.length, suffix: '~1%60' });
  });

  test.each([
    '',
    '1:d',
    '1:d6:tenant',
    '1:d6:tenant5:acme',
    `${tag}1:k`,
    `${tag}x`,
    `${tag}&12`,
    '@'.repeat(1000),
  ])('is no name: %s', (text) => expect(divideKey(text)).toBeUndefined());
});

describe('the value of an entry in a name', () => {
  const name = (...texts: string[]) => `${entriesKey('d', entries(...texts)).key}~1%60`;

  test.each([
    ['acme', name('tenant=acme')],
    ['6:tenant3:x', name('user=6:tenant', 'tenant=6:tenant3:x')],
    ['', name('tenant=', 'user=x')],
    ['line 1\nline 2', name('user=tenant', 'tenant=line 1\nline 2')],
    ['10.0.0.1', `1:d6:tenant${addressPart('10.0.0.1', false)}`],
    [undefined, name('user=tenant')],
    [undefined, name(`tenant=${'x'.repeat(200)}`)],
    [undefined, name('user=x', ...Array.from({ length: 9 }, () => `k=${'v'.repeat(120)}`), 'tenant=acme')],
    [undefined, `1:d6:tenant${patternPart('a*')}`],
    [undefined, '1:d6:tenant9:acme'],
  ])('is %s', (value, key) => expect(valueInKey(key, 'tenant')).toBe(value));
});
