import { PageBufferPool } from './page-buffer-pool.js';
import type { ViewSlices, ViewSteps } from './view-slices.js';

/** Characters of a page: encoding one takes some ten microseconds. */
const PAGE_CHARACTERS = 16 * 1024;

/** A text as it is sent, the same memory to everybody who asked. */
export interface TextPages {
  readonly pages: readonly Buffer[];
  /** Of all pages. */
  readonly bytes: number;
  /**
   * Who is not done with the text in the turn of the event loop in which it is had keeps it, and calls back once it is:
   * then its memory is used again for a later text.
   */
  retain?(): () => void;
}

/** A view that is made anew when it is asked for: once at a time, whoever asks meanwhile. */
export class TextView {
  /** How often it was made. */
  renderings = 0;
  readonly #slices: ViewSlices;
  readonly #pieces: () => ViewSteps<string, void>;
  readonly #memory: PageBufferPool;
  #running: Promise<TextPages> | undefined;
  /** The one that follows it, which all those share who asked while it ran. */
  #next: Promise<TextPages> | undefined;

  /** `memory` may be that of views like this one, which come and go. */
  constructor(slices: ViewSlices, pieces: () => ViewSteps<string, void>, memory = new PageBufferPool()) {
    this.#slices = slices;
    this.#pieces = pieces;
    this.#memory = memory;
  }

  /** The text, never older than the question. Rejects with what its pieces throw. */
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
