import { createHash } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import {
  addressPart,
  boundedKey,
  divideKey,
  entriesKey,
  extendedKey,
  MAX_NAME_BYTES,
  overrideKey,
  patternPart,
  textPart,
  valueInKey,
} from '../../../../src/policy/names/bucket-key.js';
import { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { redisKey } from '../../../../src/storage/redis/redis-key.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { MEMORY } from '../../../support/limiter/store-options.js';
import { Decider, descriptor } from '../../../support/policy/decider.js';
import { entries, policyOf } from '../../../support/policy/policies.js';

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

const ANY = 'rate_limit: { token_bucket: { max_tokens: 5, fill_interval: 1h } }';

/** Entries with strings that are too short for a digest. */
function many(count: number, last = 'x') {
  return Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: i === count - 1 ? last : 'v' }));
}

describe('a name', () => {
  test('of 1,024 bytes is kept; a longer one keeps domain and first entry, and a digest of the rest', () => {
    const tag = '1:d1:k1:v';
    const rest = 'x'.repeat(MAX_NAME_BYTES - tag.length);
    expect(boundedKey(tag, rest)).toEqual({ key: tag + rest, hashTagLength: 9 });
    expect(boundedKey(tag, `${rest}x`)).toEqual({ key: `${tag}&${hex(`${rest}x`)}`, hashTagLength: 9 });
    // Lengths are in bytes of UTF-8.
    const wide = 'ü'.repeat((MAX_NAME_BYTES - tag.length - 1) / 2);
    expect(boundedKey(tag, `${wide}x`).key).toBe(`${tag}${wide}x`);
    expect(boundedKey(tag, `${wide}xx`).key).toBe(`${tag}&${hex(`${wide}xx`)}`);
  });

  test('that becomes too long because of a later part has its digest before that part', () => {
    const tag = '1:d1:k1:v';
    const rest = 'x'.repeat(MAX_NAME_BYTES - tag.length);
    const base = boundedKey(tag, rest);
    expect(extendedKey(base, '~5:daily%60').key).toBe(`${tag}&${hex(rest)}~5:daily%60`);
    expect(overrideKey(base, 'minute', 100).key).toBe(`${tag}&${hex(rest)}!100/minute`);
    expect(overrideKey(boundedKey(tag, 'x'), 'minute', 100).key).toBe(`${tag}x!100/minute`);
  });

  test('of many entries is the digest of all strings, including strings beyond its bound', () => {
    const short = many(100);
    const parts = (list: typeof short) =>
      list.map(({ key, value }) => textPart(key) + textPart(value)).join('');
    expect(entriesKey('d', short).key).toBe(`1:d${parts(short)}`);
    const long = many(400);
    expect(entriesKey('d', long).key).toBe(`1:d2:k01:v&${hex(parts(long.slice(1)))}`);
    const texts = [...long, { key: 'last', value: 'y'.repeat(200) }];
    expect(entriesKey('d', texts).key).toBe(
      `1:d2:k01:v&${hex(`${parts(long.slice(1))}4:last200:${'y'.repeat(200)}`)}`,
    );
  });

  test('of a rule below many levels has each limit behind the digest, in the slot of its first entry', () => {
    const depth = 40;
    const value = 'w'.repeat(60);
    let node =
      '{ key: k39, rate_limits: [{ name: a, unit: minute, requests_per_unit: 5 }, { token_bucket: { ' +
      'max_tokens: 5, fill_interval: 1h } }] }';
    for (let i = depth - 2; i >= 0; i--) node = `{ key: k${i}, descriptors: [${node}] }`;
    const policy = policyOf(`domain: d\ndescriptors: [${node}]\n`);
    const given = Array.from({ length: depth }, (_, i) => ({ key: `k${i}`, value }));
    const { keys, hashTagLength } = policy.match(given);
    const tag = `1:d2:k060:${value}`;
    const rest = given
      .slice(1)
      .map(({ key }) => `${textPart(key)}60:${value}`)
      .join('');
    expect(keys).toEqual([`${tag}&${hex(rest)}~1:a%60`, `${tag}&${hex(rest)}~2`]);
    expect(hashTagLength).toBe(tag.length);
    const slot = redisKey({ key: tag, hashTagLength: tag.length }).replace(/\}.*/, '}');
    expect(redisKey({ key: keys[0]!, hashTagLength })).toBe(`${slot}${keys[0]}`);
  });

  test('differs if any entry differs in key, value or length', () => {
    const lists = [
      many(500),
      many(500, 'y'),
      many(501),
      many(500, ''),
      [...many(499), { key: 'k499x', value: '' }],
      [...many(499), { key: 'k4', value: '99x' }],
      [...many(200), { key: 'a', value: 'b'.repeat(300) }, ...many(300)],
      [...many(200), { key: 'a', value: hex('b'.repeat(300)) }, ...many(300)],
    ];
    const keys = lists.map((list) => entriesKey('d', list).key);
    expect(new Set(keys).size).toBe(lists.length);
    for (const key of keys) expect(Buffer.byteLength(key)).toBeLessThanOrEqual(MAX_NAME_BYTES);
  });
});

test('a limit override with 400,000 entries has a Redis key of less than two kilobytes', () => {
  const base = entriesKey('d', many(400_000));
  expect(redisKey(overrideKey(base, 'minute', 100)).length).toBeLessThan(2048);
});

test('floods of long names use no more memory than allowed, and a second flood adds none', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const maxBytes = 1 << 20;
  const store = new MemoryStore({ ...MEMORY, clock: new FakeClock(), maxBytes });
  const policy = `domain: d\ndescriptors: [{ key: a, ${ANY}, descriptors: [{ key: b, ${ANY} }] }]\n`;
  const decider = new Decider(policy, { store });
  const limit = { requestsPerUnit: 5, unit: 4 };
  const buffers = (): number => {
    collect();
    return process.memoryUsage().arrayBuffers;
  };
  const flood = async (round: number): Promise<void> => {
    for (let i = 0; i < 3000; i++) {
      // Names of all lengths: from the entries of a limit override, and from values of a rule.
      const long = Array.from({ length: i % 120 }, (_, at) => `k${at}=${round} ${i}`);
      decider.answer([{ ...descriptor(['a=x', ...long]), limit }]);
      decider.answer([descriptor([`a=${'x'.repeat(i % 128)}${round}.${i}`, `b=${'y'.repeat(i % 120)}`])]);
    }
    // One caller sends the longest values that names can contain.
    const huge = `${round}${'z'.repeat(30_000)}`;
    await decider.answerLarge([
      descriptor([`a=${huge}`, `b=${huge}`]),
      { ...descriptor([`a=${huge}`, `b=${huge}`]), limit },
    ]);
  };
  const before = buffers();
  await flood(0);
  const first = buffers();
  expect(store.evictions).toBeGreaterThan(0);
  expect(store.bytes).toBeLessThanOrEqual(maxBytes);
  // Records of each size have their own chunks, so there is one partly empty chunk for each size.
  expect(first - before).toBeLessThan(maxBytes + 8 * 1024 * 1024);
  for (let round = 1; round < 3; round++) await flood(round);
  expect(store.bytes).toBeLessThanOrEqual(maxBytes);
  expect(buffers() - first).toBeLessThan(512 * 1024);
});
