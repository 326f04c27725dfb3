import { setTimeout as sleep } from 'node:timers/promises';

/** Length of a pause, in durations of the rendering before it: renderings take at most a fifth of the time. */
export const PAUSES = 4;
export const MAX_PAUSE_MS = 100;

/**
 * Renders one text at a time, with pauses in between. However many clients ask, and however often, a decision waits for
 * one rendering at most.
 */
export class RenderQueue {
  #free: Promise<unknown> = Promise.resolve();

  /** Runs `render` when its turn has come. Rejects if it fails. */
  run<Result>(render: () => Result | Promise<Result>): Promise<Result> {
    let pauseMs = 0;
    const done = this.#free.then(async () => {
      const startMs = performance.now();
      try {
        return await render();
      } finally {
        pauseMs = Math.min(MAX_PAUSE_MS, PAUSES * (performance.now() - startMs));
      }
    });
    const pause = (): Promise<void> => sleep(pauseMs, undefined, { ref: false });
    this.#free = done.then(pause, pause);
    return done;
  }
}

/** A text that is rendered on request. Requests that wait for the queue share the next text. */
export class TextView {
  readonly #queue: RenderQueue;
  readonly #render: () => string | Buffer | Promise<string | Buffer>;
  #next: Promise<Buffer> | undefined;

  constructor(queue: RenderQueue, render: () => string | Buffer | Promise<string | Buffer>) {
    this.#queue = queue;
    this.#render = render;
  }

  /** Returns a text that was rendered after the call. Rejects if the rendering fails. */
  text(): Promise<Buffer> {
    this.#next ??= this.#queue.run(async () => {
      // A client that asks from now on might miss what has changed, and gets the text after this one.
      this.#next = undefined;
      const text = await this.#render();
      return typeof text === 'string' ? Buffer.from(text) : text;
    });
    return this.#next;
  }
}
