import { describe, expect, test } from '@jest/globals';
import { MAX_PAUSE_MS, PAUSES, RenderQueue, TextView } from '../../../src/http/text-view.js';

describe('a text view', () => {
  test('is rendered once for all clients that wait during a rendering', async () => {
    const rendered: string[] = [];
    let finish = (): void => {};
    const view = new TextView(new RenderQueue(), () => {
      const text = `v${rendered.length}`;
      rendered.push(text);
      return new Promise<string>((resolve) => {
        finish = () => resolve(text);
      });
    });
    const first = view.text();
    await new Promise((resolve) => setImmediate(resolve));
    const later = Array.from({ length: 40 }, () => view.text());
    finish();
    expect(String(await first)).toBe('v0');
    while (rendered.length < 2) await new Promise((resolve) => setImmediate(resolve));
    finish();
    const texts = await Promise.all(later);
    expect(new Set(texts).size).toBe(1);
    expect(String(texts[0])).toBe('v1');
    expect(rendered).toEqual(['v0', 'v1']);
  });

  test('that fails, fails for current clients, but not for later ones', async () => {
    let breaks = true;
    const view = new TextView(new RenderQueue(), () => {
      if (breaks) throw new Error('broken');
      return 'x';
    });
    await expect(view.text()).rejects.toThrow('broken');
    breaks = false;
    expect(String(await view.text())).toBe('x');
  });
});

describe('a queue', () => {
  test('renders one text at a time, and pauses longer than the rendering took', async () => {
    const queue = new RenderQueue();
    const times: [start: number, end: number][] = [];
    const render = (): void => {
      const start = performance.now();
      while (performance.now() - start < 5);
      times.push([start, performance.now()]);
    };
    await Promise.all([queue.run(render), queue.run(render), queue.run(render)]);
    const [first, second, third] = times as [[number, number], [number, number], [number, number]];
    for (const [before, after] of [
      [first, second],
      [second, third],
    ] as const) {
      const renderingMs = before[1] - before[0];
      const pauseMs = Math.min(MAX_PAUSE_MS, PAUSES * renderingMs);
      // Node.js measures a timer from the start of the event loop's turn, which includes the rendering.
      expect(after[0] - before[1]).toBeGreaterThan(pauseMs - renderingMs - 2);
    }
  });
});
