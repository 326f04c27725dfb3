import type { ServerResponse } from 'node:http';

/** An event as it is sent, the same memory to all who read it. */
export interface ServerEvent {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Sends one event. */
export type SendEvent = (event: ServerEvent) => void;

/** An event with JSON as its data. */
export function jsonEvent(name: string, data: object): ServerEvent {
  return { name, bytes: Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`) };
}

/** Server-Sent Events that go on until their reader leaves (WHATWG HTML, section 9.2). */
export interface EventFeed {
  /**
   * Begins to send events, the first ones at once. Returns what ends that. `end` ends the answer; nothing is sent any
   * more then.
   */
  follow(send: SendEvent, end: () => void): () => void;
}

export const EVENTS_TYPE = 'text/event-stream; charset=utf-8';
/** A reader who has taken nothing for so long is cut off, milliseconds. */
export const STALLED_READER_MS = 30_000;

/**
 * Sends the events of a feed. Of events with one name only the latest waits for a slow reader, so that it holds no more
 * than one of each.
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
