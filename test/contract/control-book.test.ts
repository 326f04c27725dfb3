import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { Control } from '../../src/limiter/control.js';
import { MAX_CHANGES_PER_NOTICE } from '../../src/storage/controls/live-controls.js';
import type { RedisBuckets } from '../../src/storage/redis/redis-buckets.js';
import { ProcessBook } from '../support/controls/books.js';
import { control } from '../support/controls/controls.js';
import { clusterBenches } from '../support/limiter/cluster-bench.js';
import { redisBenches } from '../support/limiter/test-stores.js';
import { waitFor } from '../support/process/wait-for.js';

// Starting Redis may take a long time on a busy machine.
jest.setTimeout(60_000);

const SECOND = 1_000_000;
/** Short, because timers wait for this time in real time. */
const SHORT = SECOND / 5;

describe.each([...redisBenches(), ...clusterBenches()])('controls in $name', (bench) => {
  let books: ProcessBook[] = [];
  beforeAll(() => bench.start());
  afterEach(async () => {
    await Promise.all(books.map(({ book }) => book.close()));
    books = [];
    await bench.reset();
  });
  afterAll(() => bench.stop());

  /** Opens the control book of another process. */
  const open = async (options: { maxControls?: number } = {}): Promise<ProcessBook> => {
    const one = new ProcessBook((await bench.open()) as unknown as RedisBuckets, bench.clock, options);
    books.push(one);
    return one;
  };
  const hears = async (one: ProcessBook, ...controls: readonly Control[]): Promise<void> => {
    const ids = controls.map(({ id }) => id).sort();
    await waitFor(`${ids} to be heard`, () => JSON.stringify(one.heard.ids) === JSON.stringify(ids));
  };

  test('are told to all processes, whole, and ended for all of them', async () => {
    const [one, other] = [await open(), await open()];
    expect(one.book.isPersistent).toBe(true);
    const identity = [
      { key: 'tenant', value: 'ä\n"\u2028\ud800', secret: false },
      { key: 'user', value: 'f00', secret: true },
    ];
    const [first, second] = [control('', { identity, reason: 'über\nlines', kind: 'allow' }), control('b')];
    expect(await one.book.put(first)).toBe('done');
    expect(one.heard.ids).toEqual([first.id]);
    expect(await one.book.put(second)).toBe('done');
    await hears(other, first, second);
    const expiresAtMicros = bench.clock.monotonicMicros() + first.durationMicros;
    expect(other.heard.controls.get(first.id)).toMatchObject({ ...first, expiresAtMicros });
    expect(await other.book.end([first.id, 'unknown'])).toBe('done');
    expect(other.heard.ids).toEqual([second.id]);
    await hears(one, second);
    await hears(await open(), second);
    expect(books.flatMap(({ logged }) => logged)).toEqual([]);
  });

  test('replace those of the same kind, domain and identity, whoever made them', async () => {
    const [one, other] = [await open(), await open()];
    const [first, second] = [control('acme'), control('acme', { reason: 'again' })];
    const rest = [control('acme', { kind: 'allow' }), control('acme', { domain: 'other' })];
    await one.book.put(first);
    for (const each of rest) await one.book.put(each);
    await other.book.put(second);
    for (const each of [one, other]) await hears(each, second, ...rest);
    // The id of a replaced control no longer ends anything.
    await one.book.end([first.id]);
    await hears(await open(), second, ...rest);
  });

  test('are gone for who ends one that another process has replaced meanwhile', async () => {
    const [one, other] = [await open(), await open()];
    const [first, second] = [control('acme'), control('acme', { reason: 'again' })];
    await one.book.put(first);
    await hears(other, first);
    // This process is not notified of further changes.
    one.isUp = false;
    await other.book.put(second);
    expect(await one.book.end([first.id])).toBe('gone');
    await hears(other, second);
    one.comeUp();
    await hears(one, second);
    expect(await one.book.end([second.id])).toBe('done');
    await hears(other);
  });

  test('end by themselves, everywhere at once, and make room', async () => {
    const [one, other] = [await open({ maxControls: 2 }), await open()];
    const [short, long, more] = [control('a', { durationMicros: SHORT }), control('b'), control('c')];
    await one.book.put(short);
    await one.book.put(long);
    expect(await one.book.put(more)).toBe('full');
    expect(await one.book.put({ ...long, durationMicros: 60 * SECOND })).toBe('done');
    await hears(other, short, long);
    bench.clock.advance(SHORT - 1);
    await hears(await open(), short, long);
    bench.clock.advance(1);
    for (const each of [one, other]) await hears(each, long);
    await hears(await open(), long);
    expect(await one.book.put(more)).toBe('done');
    await hears(other, long, more);
  });

  test('are told in small pieces to who comes later', async () => {
    const one = await open();
    const controls = Array.from({ length: 250 }, (_, i) => control(`t${i}`));
    expect(await Promise.all(controls.map((each) => one.book.put(each)))).toEqual(controls.map(() => 'done'));
    const later = await open();
    await hears(later, ...controls);
    for (const { set } of later.heard.changes) expect(set.length).toBeLessThanOrEqual(MAX_CHANGES_PER_NOTICE);
    await one.book.end(controls.slice(10).map(({ id }) => id));
    for (const each of books) await hears(each, ...controls.slice(0, 10));
  });

  test('are told to who was away for long, and those that ended stay in force meanwhile', async () => {
    const [one, other] = [await open(), await open()];
    const [first, second, third] = [control('a'), control('b'), control('c')];
    await one.book.put(first);
    await one.book.put(second);
    await hears(other, first, second);
    other.isUp = false;
    await one.book.end([first.id]);
    // The record that the control was ended is dropped.
    bench.clock.advance(30 * SECOND);
    await one.book.put(third);
    expect(other.heard.ids).toEqual([first.id, second.id].sort());
    const { touchedUnknown } = other;
    other.comeUp();
    await hears(other, second, third);
    expect(other.touchedUnknown).toBe(touchedUnknown + 1);
    // The first control was ended by an operator, so it is not lost.
    expect(other.lost).toEqual([]);
  });

  test('are lost for who was away for long, though the new log has as many changes', async () => {
    const other = await open();
    await other.book.put(control('a'));
    const redis = (await bench.open()) as unknown as RedisBuckets;
    await waitFor('the change to be read', () => other.touchedUnknown === 1);
    other.isUp = false;
    const script = `return tostring(redis.call('DEL', KEYS[1]))`;
    expect(await redis.runScript({ script, key: 'weir:1:{controls}', args: [], textBytes: 9 })).toBe('1');
    bench.clock.advance(30 * SECOND);
    const again = control('b');
    await (await open()).book.put(again);
    other.comeUp();
    await hears(other, again);
    expect(other.lost).toEqual([[1, 0]]);
  });

  test('are kept beside the names of buckets that were given tokens', async () => {
    const [one, other] = [await open(), await open()];
    await one.book.put(control('a'));
    await waitFor('the first', () => other.heard.ids.length === 1);
    const keys = ['8:open-api6:tenant4:acme', 'ä"\n'];
    expect(await one.book.announceGrants(keys)).toBe('done');
    expect(one.heard.touched.slice(0, 2)).toEqual(keys);
    await waitFor('the keys', () => other.heard.touched.length === 2);
    expect(other.heard.touched).toEqual(keys);
    // Too many keys to name in a change.
    const { touchedUnknown } = other;
    const many = Array.from({ length: 3000 }, (_, i) => `k${i}`);
    expect(await one.book.announceGrants(many)).toBe('done');
    await waitFor('all keys', () => other.touchedUnknown === touchedUnknown + 1);
    expect(other.heard.touched).toEqual(keys);
  });
});
