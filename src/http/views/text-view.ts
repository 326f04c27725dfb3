import { PageBufferPool } from './page-buffer-pool.js';
import type { ViewSlices, ViewSteps } from './view-slices.js';

/** Number of characters in a page. Encoding a page takes about ten microseconds. */
const PAGE_CHARACTERS = 16 * 1024;

/** An encoded text. All readers share its memory. */
export interface TextPages {
  readonly pages: readonly Buffer[];
  /** Total length of all pages. */
  readonly bytes: number;
  /**
   * Keeps the text beyond the turn of the event loop in which it was received. Call the returned function when the text
   * is no longer needed, so that its memory is reused.
   */
  retain?(): () => void;
}

/** A view that is rendered on request, at most once at a time. Requests during a rendering share the next one. */
export class TextView {
  /** Number of renderings. */
  renderings = 0;
  readonly #slices: ViewSlices;
  readonly #pieces: () => ViewSteps<string, void>;
  readonly #memory: PageBufferPool;
  #running: Promise<TextPages> | undefined;
  /** The next rendering, shared by all requests that arrived during the current one. */
  #next: Promise<TextPages> | undefined;

  /** `memory` may be shared with similar views. */
  constructor(slices: ViewSlices, pieces: () => ViewSteps<string, void>, memory = new PageBufferPool()) {
    this.#slices = slices;
    this.#pieces = pieces;
    this.#memory = memory;
  }

  /** Returns a text that was rendered after the call. Rejects if one of its pieces throws an error. */
  text(): Promise<TextPages> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#start();
      });
    return this.#next;
  }

  #start(): Promise<TextPages> {
    this.#running = this.#render().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #render(): Promise<TextPages> {
    this.renderings++;
    const pages: Buffer[] = [];
    let bytes = 0;
    let text = '';
    const endPage = (): void => {
      const page = this.#memory.encode(text);
      text = '';
      bytes += page.length;
      pages.push(page);
    };
    await this.#slices.run(this.#pieces(), (piece) => {
      text += piece;
      if (text.length >= PAGE_CHARACTERS) endPage();
    });
    if (text !== '') endPage();
    return { pages, bytes, retain: this.#memory.lend(pages) };
  }
}
