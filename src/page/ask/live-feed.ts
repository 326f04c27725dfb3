import type { HistoryPoint, Overview, OverviewAnswer, OverviewCaller } from '../../admin/page/messages.js';
import { SseParser } from '../text/sse-parser.js';
import type { Client } from './client.js';
import { isUsable } from './usable.js';

/** The state of the connection to the server. Times are in milliseconds since the epoch. */
export type FeedState =
  | { readonly kind: 'connecting' }
  /** The page receives a stream of events. */
  | { readonly kind: 'live' }
  /** No stream is available, so the page polls the server. */
  | { readonly kind: 'polling' }
  /** The page is hidden and receives nothing. */
  | { readonly kind: 'paused' }
  /** The page cannot read the server's answers. */
  | { readonly kind: 'unusable' }
  | { readonly kind: 'lost'; readonly since: number; readonly retryAt: number }
  | { readonly kind: 'refused'; readonly status: number; readonly error: string };

/** Receives the server's data and the state of the feed. */
export interface FeedListener {
  caller(caller: OverviewCaller): void;
  overview(overview: Overview): void;
  point(point: HistoryPoint): void;
  state(state: FeedState): void;
}

/** Timeouts and intervals, in milliseconds. */
export interface FeedTimes {
  /** Maximum time until the first event. After this time, the page assumes that a proxy buffers the stream. */
  readonly firstEvent: number;
  /**
   * Maximum time between events. An active stream sends an event for each history point, so longer silence means that
   * it has failed.
   */
  readonly silence: number;
  readonly poll: number;
  /** Interval between attempts to open a stream while the page polls. */
  readonly streamRetry: number;
  /** Time for which the page must be hidden before the feed pauses. */
  readonly hidden: number;
  readonly minPause: number;
  readonly maxPause: number;
}

const FEED_TIMES: FeedTimes = {
  firstEvent: 10_000,
  silence: 13_000,
  poll: 5000,
  streamRetry: 30_000,
  hidden: 5000,
  minPause: 500,
  maxPause: 10_000,
};

type Outcome = 'ended' | 'no stream' | 'refused';

/**
 * Follows `/overview` while the page is visible, and reconnects after failures. Browsers open at most six connections
 * to a server for all tabs, so a hidden tab must not hold one.
 */
export class LiveFeed {
  readonly #client: Client;
  readonly #listener: FeedListener;
  readonly #times: FeedTimes;
  #stop = new AbortController();
  /** Time at which data last arrived. */
  #receivedAt = Date.now();
  #failures = 0;
  #isFollowing = false;
  #isPaused = false;
  /** Whether data arrived since the start that the page cannot read. */
  #isUnusable = false;
  #hiding: ReturnType<typeof setTimeout> | undefined;

  constructor(client: Client, listener: FeedListener, times: FeedTimes = FEED_TIMES) {
    this.#client = client;
    this.#listener = listener;
    this.#times = times;
    document.addEventListener('visibilitychange', () => this.#checkVisibility());
  }

  /** Starts the feed, or restarts it immediately, for example with another token. */
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
    this.#checkVisibility();
  }

  /** Pauses the feed while the page stays hidden, and restarts it when the page is visible again. */
  #checkVisibility(): void {
    clearTimeout(this.#hiding);
    if (!document.hidden) {
      if (this.#isPaused) this.restart();
    } else if (!this.#isPaused) {
      this.#hiding = setTimeout(() => this.#pause(), this.#times.hidden);
    }
  }

  #pause(): void {
    // If the server requires another token, the feed does not run, so it cannot be paused.
    if (!this.#isFollowing) return;
    this.#stop.abort();
    this.#isPaused = true;
    this.#listener.state({ kind: 'paused' });
  }

  async #follow(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      let outcome = await this.#stream(stop);
      if (outcome === 'no stream') outcome = await this.#pollUntilStream(stop);
      if (stop.aborted) return;
      // The server's answer stays the same until the token changes.
      if (outcome === 'refused' && this.#refusedStatus === 401) return;
      const { minPause, maxPause } = this.#times;
      const pause = Math.min(maxPause, minPause * 2 ** Math.min(this.#failures, 10));
      this.#failures++;
      if (outcome !== 'refused') {
        this.#listener.state({ kind: 'lost', since: this.#receivedAt, retryAt: Date.now() + pause });
      }
      await sleep(pause, stop);
    }
  }

  #refusedStatus = 0;

  async #refused(response: Response): Promise<Outcome> {
    const refusal = await this.#client.failure(response);
    this.#refusedStatus = refusal.status;
    // A 503 means that the server has too many streams, but polling still works. A 502 or 504 comes from a proxy and
    // does not count as a refusal.
    if (refusal.status === 503) return 'no stream';
    if (refusal.status >= 502 && refusal.status <= 504) return 'ended';
    this.#listener.state({ kind: 'refused', ...refusal });
    return 'refused';
  }

  /** @param onFirstEvent called when the first event arrives */
  async #stream(stop: AbortSignal, onFirstEvent: () => void = () => {}): Promise<Outcome> {
    const attempt = new AbortController();
    const signal = AbortSignal.any([stop, attempt.signal]);
    let events = 0;
    let isBuffered = false;
    const giveUp = (): void => {
      isBuffered = events === 0;
      attempt.abort();
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
        const received = parser.feed(value ?? '');
        for (const { type, data } of received) {
          if (++events === 1) onFirstEvent();
          this.#received('live', () => this.#dispatch(type, data));
        }
        // Comments prove nothing about the server: a proxy may send comments to keep the connection open.
        if (received.length === 0) continue;
        clearTimeout(timer);
        timer = setTimeout(giveUp, this.#times.silence);
      }
    } catch {
      return isBuffered ? 'no stream' : 'ended';
    } finally {
      clearTimeout(timer);
      attempt.abort();
    }
  }

  #dispatch(type: string, data: string): void {
    if (type === 'caller') this.#listener.caller(usable<OverviewCaller>(type, data));
    if (type === 'overview') this.#listener.overview(usable<Overview>(type, data));
    if (type === 'point') this.#listener.point(usable<HistoryPoint>(type, data));
  }

  /** Polls, and also tries to open a stream at intervals, because the cause of the delay may be over. */
  async #pollUntilStream(stop: AbortSignal): Promise<Outcome> {
    const enough = new AbortController();
    const signal = AbortSignal.any([stop, enough.signal]);
    let polled: Outcome | undefined;
    const polling = this.#poll(signal).then((outcome) => {
      polled = outcome;
    });
    for (;;) {
      await Promise.race([polling, sleep(this.#times.streamRetry, signal)]);
      if (stop.aborted || polled !== undefined) break;
      const outcome = await this.#stream(stop, () => enough.abort());
      if (enough.signal.aborted) return outcome;
    }
    enough.abort();
    return polled ?? 'ended';
  }

  /** Polls until an answer is missing. */
  async #poll(stop: AbortSignal): Promise<Outcome> {
    while (!stop.aborted) {
      const signal = AbortSignal.any([stop, AbortSignal.timeout(this.#times.firstEvent)]);
      try {
        const response = await this.#client.open('overview', {}, {}, signal);
        if (!response.ok) return await this.#refused(response);
        const text = await response.text();
        if (stop.aborted) return 'ended';
        this.#received('polling', () => {
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
   * Passes arrived data on with `tell`. If `tell` throws, the page and the server have different versions: reconnecting
   * or polling more often would not help.
   */
  #received(kind: 'live' | 'polling', dispatch: () => void): void {
    this.#receivedAt = Date.now();
    try {
      this.#listener.state({ kind: this.#isUnusable ? 'unusable' : kind });
      dispatch();
      if (!this.#isUnusable) this.#failures = 0;
    } catch (error) {
      if (this.#isUnusable) return;
      this.#isUnusable = true;
      // For people who look at the console. The page itself shows what to do.
      console.error(error);
      this.#listener.state({ kind: 'unusable' });
    }
  }
}

/** Parses JSON. Throws an Error if the page cannot use the value. */
function usable<T>(name: string, text: string): T {
  const value: unknown = JSON.parse(text);
  if (!isUsable(name, value)) throw new Error(`this page cannot read the event or answer ${name} from weir`);
  return value as T;
}

/** Resolves after `ms` milliseconds, or when `stop` is aborted. */
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
