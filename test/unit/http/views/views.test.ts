import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { jsonText, LazyList, LazyObject } from '../../../../src/config/show/json-text.js';
import { OutgoingTexts } from '../../../../src/http/views/outgoing-texts.js';
import { PageBufferPool } from '../../../../src/http/views/page-buffer-pool.js';
import { sortedIndexes } from '../../../../src/http/views/sorted-indexes.js';
import { type TextPages, TextView } from '../../../../src/http/views/text-view.js';
import { SLICE_MS, ViewSlices } from '../../../../src/http/views/view-slices.js';
import { expectEqual } from '../../../support/assert/quick-expect.js';
import { runs } from '../../../support/assert/runs.js';
import { anyText } from '../../../support/codec/any-text.js';
import { textOf } from '../../../support/codec/text-of.js';

/** Creates slices with a clock that advances by `stepMs` at each read, and counts their turns. */
function countedSlices(stepMs: number) {
  let now = 0;
  let turns = 0;
  const slices = new ViewSlices({
    now: () => {
      now += stepMs;
      return now;
    },
    nextTurn: (callback) => {
      turns++;
      setImmediate(callback);
    },
  });
  return { slices, turns: () => turns };
}

function* letters(text: string): Generator<string> {
  yield* text;
}

test('repeated views reuse the same memory', async () => {
  const memory = new PageBufferPool();
  const used = new Set<ArrayBufferLike>();
  for (let answer = 0; answer < 25; answer++) {
    const view = new TextView(new ViewSlices(), () => letters('x'.repeat(50_000)), memory);
    const { pages, retain } = await view.text();
    const done = retain?.();
    for (const { buffer } of pages) used.add(buffer);
    await new Promise((resolve) => setImmediate(resolve));
    done?.();
  }
  // Buffers of one response.
  expect(used.size).toBeLessThan(10);
});

describe('slices of views', () => {
  test('end when their time is over', async () => {
    const { slices, turns } = countedSlices(SLICE_MS / 4);
    let taken = '';
    await slices.run(letters('a'.repeat(16)), (piece) => {
      taken += piece;
    });
    expect(taken).toHaveLength(16);
    // No work waits in the last turn.
    expect(turns()).toBe(6);
  });

  test('take turns, one in a turn', async () => {
    const { slices } = countedSlices(1);
    let order = '';
    const run = (text: string) =>
      slices.run(letters(text), (piece) => {
        order += piece;
      });
    await Promise.all([run('aaa'), run('bbb'), run('ccc')]);
    expect(order).toBe('abcabcabc');
  });

  test('wait for promises, skip pauses, and rethrow errors', async () => {
    const { slices } = countedSlices(1);
    function* steps() {
      yield '' as const;
      yield Promise.resolve();
      yield 'x';
      return 7;
    }
    const pieces: string[] = [];
    expect(await slices.run(steps(), (piece: string) => pieces.push(piece))).toBe(7);
    expect(pieces).toEqual(['x']);
    // biome-ignore lint/correctness/useYield: it breaks before
    function* broken(): Generator<''> {
      throw new Error('broken');
    }
    await expect(slices.run(broken())).rejects.toThrow('broken');
    expect(await slices.run(steps())).toBe(7);
  });
});

describe('a text view', () => {
  test('is rendered once for all clients that wait during a rendering', async () => {
    let version = 0;
    const view = new TextView(new ViewSlices(), () => letters(`v${version}`));
    const first = view.text();
    version = 1;
    const later = Array.from({ length: 40 }, () => view.text());
    const texts = await Promise.all(later);
    expect(new Set(texts).size).toBe(1);
    expect(Buffer.concat([...(texts[0]?.pages ?? [])]).toString()).toBe('v1');
    await first;
    expect(view.renderings).toBe(2);
    await view.text();
    expect(view.renderings).toBe(3);
  });

  test('is sent in pages that together form the text', async () => {
    const text = 'ü€x\n'.repeat(20_000);
    const view = new TextView(new ViewSlices(), () => letters(text));
    const { pages, bytes } = await view.text();
    expect(pages.length).toBeGreaterThan(1);
    expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(64 * 1024);
    expect(Buffer.concat([...pages]).toString()).toBe(text);
    expect(bytes).toBe(Buffer.byteLength(text));
  });

  test('reuses the memory of a text when all clients have read it', async () => {
    let version = 'a';
    const view = new TextView(new ViewSlices(), () => letters(version.repeat(100_000)));
    const memory = ({ pages }: TextPages) => new Set(pages.map(({ buffer }) => buffer));
    const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
    const first = await view.text();
    const done = first.retain?.();
    await nextTurn();
    version = 'b';
    const second = await view.text();
    expect([...memory(second)].some((buffer) => memory(first).has(buffer))).toBe(false);
    expect(Buffer.concat([...first.pages]).toString()).toBe('a'.repeat(100_000));
    await nextTurn();
    done?.();
    done?.();
    version = 'c';
    const third = await view.text();
    const known = new Set([...memory(first), ...memory(second)]);
    expect([...memory(third)].every((buffer) => known.has(buffer))).toBe(true);
    expect(Buffer.concat([...third.pages]).toString()).toBe('c'.repeat(100_000));
  });

  test('with an error fails for current clients, but not for later ones', async () => {
    let breaks = true;
    const view = new TextView(new ViewSlices(), () => {
      if (breaks) throw new Error('broken');
      return letters('x');
    });
    const [first, second] = [view.text(), view.text()];
    breaks = false;
    await expect(first).rejects.toThrow('broken');
    expect((await second).bytes).toBe(1);
  });
});

describe('held texts', () => {
  const textOfBytes = (bytes: number) => ({ pages: [], bytes });

  test('close the readers of the oldest text above the bound', () => {
    const held = new OutgoingTexts(10);
    const cut: string[] = [];
    const [old, middle, next] = [textOfBytes(4), textOfBytes(4), textOfBytes(4)];
    held.hold(old, () => cut.push('old 1'));
    held.hold(old, () => cut.push('old 2'));
    held.hold(middle, () => cut.push('middle'));
    expect(cut).toEqual([]);
    held.hold(next, () => cut.push('next'));
    expect(cut).toEqual(['old 1', 'old 2']);
  });

  test('are freed when all clients have read them; a single text may be longer', () => {
    const held = new OutgoingTexts(10);
    const cut: string[] = [];
    const release = held.hold(textOfBytes(8), () => cut.push('first'));
    release();
    release();
    held.hold(textOfBytes(8), () => cut.push('second'));
    expect(cut).toEqual([]);
    held.hold(textOfBytes(100), () => cut.push('long'));
    expect(cut).toEqual(['second']);
  });
});

test('sorting in slices has the same result', () => {
  const name = fc.oneof(anyText({ maxLength: 4 }), fc.constantFrom('a.', 'a.b.', 'a.b'));
  fc.assert(
    fc.property(fc.array(name, { minLength: 0, maxLength: 1500, size: 'max' }), (names) => {
      const steps = sortedIndexes(names);
      let step = steps.next();
      while (step.done !== true) step = steps.next();
      const order = [...step.value];
      expectEqual(
        order.map((at) => names[at]),
        [...names].sort(),
      );
      expectEqual(
        order.toSorted((one, other) => one - other),
        names.map((_, at) => at),
      );
    }),
    runs(90),
  );
});

test('lazy JSON equals the output of JSON.stringify', () => {
  const lazy = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return new LazyList(
        (function* () {
          for (const item of value) {
            yield undefined;
            yield lazy(item);
          }
        })(),
      );
    }
    if (typeof value !== 'object' || value === null) return value;
    return new LazyObject(
      Object.fromEntries(Object.entries(value).map(([name, field]) => [name, lazy(field)])),
    );
  };
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value, null, 2);
      expect(textOf(jsonText(lazy(value)))).toBe(text);
      expect(textOf(jsonText(value))).toBe(text);
    }),
    runs(300),
  );
});
