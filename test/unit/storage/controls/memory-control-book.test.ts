import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { MAX_CONTROLS } from '../../../../src/limiter/control.js';
import { turn } from '../../../../src/runtime/turns.js';
import { MAX_CHANGES_PER_NOTICE } from '../../../../src/storage/controls/live-controls.js';
import { MemoryControlBook } from '../../../../src/storage/controls/memory-control-book.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { control, RecordedControls } from '../../../support/controls/controls.js';
import { waitFor } from '../../../support/process/wait-for.js';

const SECOND = 1_000_000;

let clock: FakeClock;
let book: MemoryControlBook;
let recorded: RecordedControls;

beforeEach(() => {
  clock = new FakeClock();
  book = new MemoryControlBook(() => clock.monotonicMicros());
  recorded = new RecordedControls();
  book.onChange(recorded.listener);
});
afterEach(() => book.close());

describe('a control book in memory', () => {
  test('reports a new control at once, with its end', async () => {
    const one = control('acme', { durationMicros: 5 * SECOND });
    expect(await book.put(one)).toBe('done');
    expect(recorded.controls.get(one.id)).toEqual({ ...one, expiresAtMicros: clock.monotonic + 5 * SECOND });
    expect(book.isPersistent).toBe(false);
  });

  test('replaces the control with the same kind, domain and identity', async () => {
    const [first, second] = [control('acme'), control('acme', { reason: 'again' })];
    const other = control('acme', { kind: 'allow' });
    for (const one of [first, other, second]) await book.put(one);
    expect(recorded.ids).toEqual([second.id, other.id].sort());
  });

  test('ends controls by their ids, and ignores unknown ids', async () => {
    const [one, other] = [control('acme'), control('beta')];
    await book.put(one);
    await book.put(other);
    expect(await book.end(['unknown', one.id, one.id])).toBe('done');
    expect(recorded.ids).toEqual([other.id]);
    expect(recorded.changes.at(-1)?.ended).toEqual([one.id]);
  });

  test('ends a control when it expires, which makes space for another one', async () => {
    const [short, long] = [
      control('a', { durationMicros: SECOND }),
      control('b', { durationMicros: 60 * SECOND }),
    ];
    await book.put(short);
    await book.put(long);
    clock.advance(SECOND);
    await waitFor('the control to be ended', async () => recorded.ids.length === 1);
    expect(recorded.ids).toEqual([long.id]);
  });

  test('reports all active controls to a later listener', async () => {
    const over = control('over', { durationMicros: SECOND });
    const one = control('acme');
    await book.put(over);
    await book.put(one);
    clock.advance(SECOND);
    const later = new RecordedControls();
    book.onChange(later.listener);
    expect(later.ids).toEqual([one.id]);
    expect(later.changes[0]?.isReset).toBe(true);
  });

  test('reports buckets that got tokens', async () => {
    await book.announceGrants(['k1', 'k2']);
    expect(recorded.touched).toEqual(['k1', 'k2']);
  });

  test('limits the number of controls, but still replaces existing ones', async () => {
    for (let i = 0; i < MAX_CONTROLS; i++) await book.put(control(`t${i}`));
    expect(await book.put(control('one more'))).toBe('full');
    expect(await book.put(control('t0', { reason: 'another' }))).toBe('done');
    const later = new RecordedControls();
    book.onChange(later.listener);
    // The changes arrive in several groups, and in order with later changes.
    expect(later.ids).toHaveLength(MAX_CHANGES_PER_NOTICE);
    await book.end([recorded.ids[0] as string]);
    while (later.controls.size < MAX_CONTROLS - 1 || recorded.controls.size >= MAX_CONTROLS) await turn();
    await turn();
    expect(later.ids).toEqual(recorded.ids);
    for (const { set } of later.changes) expect(set.length).toBeLessThanOrEqual(MAX_CHANGES_PER_NOTICE);
    expect(await book.put(control('one more'))).toBe('done');
  });
});
