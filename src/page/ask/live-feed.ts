import type { HistoryPoint, Overview, OverviewAnswer, OverviewCaller } from '../../server/page/messages.js';
import { SseParser } from '../text/sse-parser.js';
import type { Client } from './client.js';

/** How the page hears from the server. Times are milliseconds since the epoch. */
export type FeedState =
  | { readonly kind: 'connecting' }
  /** By a stream of events. */
  | { readonly kind: 'live' }
  /** No stream can be had, so it is asked every few seconds. */
  | { readonly kind: 'polling' }
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
  readonly firstPause: number;
  readonly longestPause: number;
}

export const FEED_TIMES: FeedTimes = {
  firstEvent: 10_000,
  silence: 30_000,
  poll: 5000,
  firstPause: 500,
  longestPause: 10_000,
};

type Outcome = 'ended' | 'held back' | 'refused';

/** Follows `/overview` for as long as the page is there, through whatever becomes of the connection. */
export class LiveFeed {
  readonly #client: Client;
  readonly #listener: FeedListener;
  readonly #times: FeedTimes;
  #stop = new AbortController();
  /** When something came last. */
  #heardAt = Date.now();
  #failures = 0;

  constructor(client: Client, listener: FeedListener, times: FeedTimes = FEED_TIMES) {
    this.#client = client;
    this.#listener = listener;
    this.#times = times;
  }

  /** Begins, or begins anew at once: with another token, or because somebody does not want to wait. */
  restart(): void {
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#failures = 0;
    void this.#follow(this.#stop.signal);
  }

  async #follow(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const outcome = await this.#stream(stop);
      if (outcome === 'held back') await this.#poll(stop);
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

  async #stream(stop: AbortSignal): Promise<Outcome> {
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
        for (const { type, data } of parser.feed(value ?? '')) {
          events++;
          this.#heard('live');
          this.#tell(type, data);
        }
        if (events === 0) continue;
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
    if (type === 'caller') this.#listener.caller(JSON.parse(data) as OverviewCaller);
    if (type === 'overview') this.#listener.overview(JSON.parse(data) as Overview);
    if (type === 'point') this.#listener.point(JSON.parse(data) as HistoryPoint);
  }

  /** Asks again and again until no answer comes. */
  async #poll(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const signal = AbortSignal.any([stop, AbortSignal.timeout(this.#times.firstEvent)]);
      try {
        const response = await this.#client.open('overview', {}, {}, signal);
        if (!response.ok) {
          await this.#refused(response);
          return;
        }
        const answer = (await response.json()) as OverviewAnswer;
        if (stop.aborted) return;
        this.#heard('polling');
        this.#listener.caller(answer.caller);
        this.#listener.overview(answer);
      } catch {
        return;
      }
      await sleep(this.#times.poll, stop);
    }
  }

  #heard(kind: 'live' | 'polling'): void {
    this.#heardAt = Date.now();
    this.#failures = 0;
    this.#listener.state({ kind });
  }
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
