import type { HistoryPoint, Overview, OverviewAnswer, OverviewCaller } from '../../admin/page/messages.js';
import { SseParser } from '../text/sse-parser.js';
import type { Client } from './client.js';
import { isUsable } from './usable.js';

/** How the page hears from the server. Times are milliseconds since the epoch. */
export type FeedState =
  | { readonly kind: 'connecting' }
  /** By a stream of events. */
  | { readonly kind: 'live' }
  /** No stream can be had, so it is asked every few seconds. */
  | { readonly kind: 'polling' }
  /** Nobody sees the page, so that it hears nothing. */
  | { readonly kind: 'paused' }
  /** The server answers in a way that the page cannot use. */
  | { readonly kind: 'unusable' }
  | { readonly kind: 'lost'; readonly since: number; readonly retryAt: number }
  | { readonly kind: 'refused'; readonly status: number; readonly error: string };

/** Told of what the server says. */
export interface FeedListener {
  caller(caller: OverviewCaller): void;
  overview(overview: Overview): void;
  point(point: HistoryPoint): void;
  state(state: FeedState): void;
}

/** Spans of time, ms. */
export interface FeedTimes {
  /** A stream without an event for so long is held back by something on the way. */
  readonly firstEvent: number;
  /** A stream that says nothing for so long is dead: the history alone has a point more often. */
  readonly silence: number;
  readonly poll: number;
  /** How often a stream is tried again while the server is polled. */
  readonly streamAgain: number;
  /** How long the page is hidden before it follows the server no more. */
  readonly hidden: number;
  readonly firstPause: number;
  readonly longestPause: number;
}

export const FEED_TIMES: FeedTimes = {
  firstEvent: 10_000,
  silence: 13_000,
  poll: 5000,
  streamAgain: 30_000,
  hidden: 5000,
  firstPause: 500,
  longestPause: 10_000,
};

type Outcome = 'ended' | 'held back' | 'refused';

/**
 * Follows `/overview` for as long as the page is seen, through whatever becomes of the connection. A browser opens six
 * connections to a server for all its tabs, so that tabs that nobody sees must not hold any.
 */
export class LiveFeed {
  readonly #client: Client;
  readonly #listener: FeedListener;
  readonly #times: FeedTimes;
  #stop = new AbortController();
  /** When something came last. */
  #heardAt = Date.now();
  #failures = 0;
  #isFollowing = false;
  #isPaused = false;
  /** Whether something that came could not be used since it began. */
  #isUnusable = false;
  #hiding: ReturnType<typeof setTimeout> | undefined;

  constructor(client: Client, listener: FeedListener, times: FeedTimes = FEED_TIMES) {
    this.#client = client;
    this.#listener = listener;
    this.#times = times;
    document.addEventListener('visibilitychange', () => this.#look());
  }

  /** Begins, or begins anew at once: with another token, or because somebody does not want to wait. */
  restart(): void {
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#failures = 0;
    this.#isUnusable = this.#isPaused = false;
    const stop = this.#stop.signal;
    this.#isFollowing = true;
    void this.#follow(stop).finally(() => {
      if (!stop.aborted) this.#isFollowing = false;
    });
    this.#look();
  }

  /** Pauses where the page stays hidden, and goes on with all of it anew when it is seen. */
  #look(): void {
    clearTimeout(this.#hiding);
    if (!document.hidden) {
      if (this.#isPaused) this.restart();
    } else if (!this.#isPaused) {
      this.#hiding = setTimeout(() => this.#pause(), this.#times.hidden);
    }
  }

  #pause(): void {
    // Where the server wants another token there is nothing to go on with.
    if (!this.#isFollowing) return;
    this.#stop.abort();
    this.#isPaused = true;
    this.#listener.state({ kind: 'paused' });
  }

  async #follow(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      let outcome = await this.#stream(stop);
      if (outcome === 'held back') outcome = await this.#pollUntilStream(stop);
      if (stop.aborted) return;
      // Without another token the answer stays the same.
      if (outcome === 'refused' && this.#refusedStatus === 401) return;
      const { firstPause, longestPause } = this.#times;
      const pause = Math.min(longestPause, firstPause * 2 ** Math.min(this.#failures, 10));
      this.#failures++;
      if (outcome !== 'refused') {
        this.#listener.state({ kind: 'lost', since: this.#heardAt, retryAt: Date.now() + pause });
      }
      await sleep(pause, stop);
    }
  }

  #refusedStatus = 0;

  async #refused(response: Response): Promise<Outcome> {
    const refusal = await this.#client.failure(response);
    this.#refusedStatus = refusal.status;
    // A server that has too many followers can still be asked; what a proxy says while weir is away is no refusal.
    if (refusal.status === 503) return 'held back';
    if (refusal.status >= 502 && refusal.status <= 504) return 'ended';
    this.#listener.state({ kind: 'refused', ...refusal });
    return 'refused';
  }

  /** @param lives called with the first event */
  async #stream(stop: AbortSignal, lives: () => void = () => {}): Promise<Outcome> {
    const given = new AbortController();
    const signal = AbortSignal.any([stop, given.signal]);
    let events = 0;
    let heldBack = false;
    const giveUp = (): void => {
      heldBack = events === 0;
      given.abort();
    };
    let timer = setTimeout(giveUp, this.#times.firstEvent);
    try {
      const response = await this.#client.open('overview', {}, { accept: 'text/event-stream' }, signal);
      if (!response.ok) return await this.#refused(response);
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      for (;;) {
        const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
        if (done || stop.aborted) return 'ended';
        const heard = parser.feed(value ?? '');
        for (const { type, data } of heard) {
          if (++events === 1) lives();
          this.#heard('live', () => this.#tell(type, data));
        }
        // Comments, with which a proxy may keep a connection, say nothing of the server.
        if (heard.length === 0) continue;
        clearTimeout(timer);
        timer = setTimeout(giveUp, this.#times.silence);
      }
    } catch {
      return heldBack ? 'held back' : 'ended';
    } finally {
      clearTimeout(timer);
      given.abort();
    }
  }

  #tell(type: string, data: string): void {
    if (type === 'caller') this.#listener.caller(usable<OverviewCaller>(type, data));
    if (type === 'overview') this.#listener.overview(usable<Overview>(type, data));
    if (type === 'point') this.#listener.point(usable<HistoryPoint>(type, data));
  }

  /** Polls, and tries meanwhile whether a stream can be had after all: it may have been a stall that is over. */
  async #pollUntilStream(stop: AbortSignal): Promise<Outcome> {
    const enough = new AbortController();
    const signal = AbortSignal.any([stop, enough.signal]);
    let polled: Outcome | undefined;
    const polling = this.#poll(signal).then((outcome) => {
      polled = outcome;
    });
    for (;;) {
      await Promise.race([polling, sleep(this.#times.streamAgain, signal)]);
      if (stop.aborted || polled !== undefined) break;
      const outcome = await this.#stream(stop, () => enough.abort());
      if (enough.signal.aborted) return outcome;
    }
    enough.abort();
    return polled ?? 'ended';
  }

  /** Asks again and again until no answer comes. */
  async #poll(stop: AbortSignal): Promise<Outcome> {
    while (!stop.aborted) {
      const signal = AbortSignal.any([stop, AbortSignal.timeout(this.#times.firstEvent)]);
      try {
        const response = await this.#client.open('overview', {}, {}, signal);
        if (!response.ok) return await this.#refused(response);
        const text = await response.text();
        if (stop.aborted) return 'ended';
        this.#heard('polling', () => {
          const answer = usable<OverviewAnswer>('overview', text);
          this.#listener.caller(answer.caller);
          this.#listener.overview(answer);
        });
      } catch {
        return 'ended';
      }
      await sleep(this.#times.poll, stop);
    }
    return 'ended';
  }

  /**
   * Something came, which `tell` passes on. Where that fails, the page and the server do not fit together: the
   * connection is not to blame, and asking more often would not help.
   */
  #heard(kind: 'live' | 'polling', tell: () => void): void {
    this.#heardAt = Date.now();
    try {
      this.#listener.state({ kind: this.#isUnusable ? 'unusable' : kind });
      tell();
      if (!this.#isUnusable) this.#failures = 0;
    } catch (error) {
      if (this.#isUnusable) return;
      this.#isUnusable = true;
      // For whoever looks into the console; the page itself says what to do.
      console.error(error);
      this.#listener.state({ kind: 'unusable' });
    }
  }
}

/** What stands in a JSON text; throws an Error where the page cannot use it. */
function usable<T>(name: string, text: string): T {
  const value: unknown = JSON.parse(text);
  if (!isUsable(name, value)) throw new Error(`this page cannot use what weir tells (${name})`);
  return value as T;
}

/** Resolves after `ms`, or when `stop` says so. */
function sleep(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stop.addEventListener('abort', end);
  });
}
