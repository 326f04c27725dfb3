import type { ServerResponse } from 'node:http';

/** An encoded event. All readers share its memory. */
export interface ServerEvent {
  readonly name: string;
  readonly bytes: Buffer;
}

export type SendEvent = (event: ServerEvent) => void;

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

/**
 * Sends the events of a feed. For a slow reader, only the latest event of each name is kept, which limits the memory
 * held. The port disconnects a reader that reads nothing.
 */
export function sendEvents(response: ServerResponse, feed: EventFeed): void {
  const waiting = new Map<string, ServerEvent>();
  const send: SendEvent = (event) => {
    if (response.destroyed || response.writableEnded) return;
    if (response.writableNeedDrain) waiting.set(event.name, event);
    else response.write(event.bytes);
  };
  response.on('drain', () => {
    for (const [name, event] of waiting) {
      if (response.writableNeedDrain) return;
      waiting.delete(name);
      send(event);
    }
  });
  let stop = (): void => {};
  response.once('close', () => stop());
  stop = feed.follow(send, () => response.end());
}
