/** An event of a stream of Server-Sent Events. */
export interface StreamEvent {
  /** `message` where the stream does not say. */
  readonly type: string;
  readonly data: string;
}

/** Most characters of an event that has not ended: more is no stream of weir. */
const MAX_EVENT = 16 * 1024 * 1024;

/** Reads Server-Sent Events (`text/event-stream`) that come in pieces, cut anywhere. */
export class SseParser {
  #rest = '';
  #type = '';
  #data: string[] = [];
  #size = 0;
  /** The last piece ended with a carriage return: a line feed right behind it belongs to the same line end. */
  #afterReturn = false;

  /** The events that end within `piece`. Throws an Error for one that never ends. */
  feed(piece: string): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    let start = 0;
    for (let at = 0; at < piece.length; at++) {
      const char = piece[at];
      const follows = char === '\n' && this.#afterReturn;
      this.#afterReturn = char === '\r';
      if (follows) {
        start = at + 1;
        continue;
      }
      if (char !== '\n' && char !== '\r') continue;
      const event = this.#line(this.#rest + piece.slice(start, at));
      if (event !== undefined) events.push(event);
      this.#rest = '';
      start = at + 1;
    }
    this.#rest += piece.slice(start);
    if (this.#rest.length + this.#size > MAX_EVENT) throw new Error('an event does not end');
    return events;
  }

  #line(line: string): StreamEvent | undefined {
    if (line === '') return this.#end();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'event') this.#type = value;
    if (field === 'data') {
      this.#data.push(value);
      this.#size += value.length;
    }
    return undefined;
  }

  #end(): StreamEvent | undefined {
    const event = { type: this.#type === '' ? 'message' : this.#type, data: this.#data.join('\n') };
    const isEvent = this.#data.length > 0;
    this.#type = '';
    this.#data = [];
    this.#size = 0;
    return isEvent ? event : undefined;
  }
}
