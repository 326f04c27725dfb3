import type { ServerResponse } from 'node:http';

/** An encoded event. All readers share its memory. */
export interface ServerEvent {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Sends one event. */
export type SendEvent = (event: ServerEvent) => void;

/** Creates an event with JSON data. */
export function jsonEvent(name: string, data: object): ServerEvent {
  return { name, bytes: Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`) };
}

/** A stream of Server-Sent Events that continues until its reader disconnects (WHATWG HTML, section 9.2). */
export interface EventFeed {
  /**
   * Starts sending events, the first ones immediately. Returns a function that stops it. `end` ends the response, after
   * which no event is sent.
   */
  follow(send: SendEvent, end: () => void): () => void;
}

export const EVENTS_TYPE = 'text/event-stream; charset=utf-8';
/** Time in milliseconds after which a stalled reader is disconnected. */
export const STALLED_READER_MS = 30_000;

/**
 * Sends the events of a feed. For a slow reader, only the latest event of each name is kept, which limits the memory
 * held.
 */
export function sendEvents(response: ServerResponse, feed: EventFeed): void {
  const waiting = new Map<string, ServerEvent>();
  let stalled: NodeJS.Timeout | undefined;
  const write = ({ bytes }: ServerEvent): void => {
    if (response.write(bytes)) return;
    stalled = setTimeout(() => response.destroy(), STALLED_READER_MS).unref();
  };
  const send: SendEvent = (event) => {
    if (response.destroyed || response.writableEnded) return;
    if (stalled === undefined) write(event);
    else waiting.set(event.name, event);
  };
  response.on('drain', () => {
    clearTimeout(stalled);
    stalled = undefined;
    for (const [name, event] of waiting) {
      if (stalled !== undefined) return;
      waiting.delete(name);
      write(event);
    }
  });
  let stop = (): void => {};
  response.once('close', () => {
    clearTimeout(stalled);
    stop();
  });
  stop = feed.follow(send, () => response.end());
}
