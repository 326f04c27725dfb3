/** An event of a stream of Server-Sent Events. */
export interface StreamEvent {
  /** Type of the event; `message` if the stream does not name one. */
  readonly type: string;
  readonly data: string;
}

/** Maximum number of characters of an unfinished event. A longer event cannot come from weir. */
const MAX_EVENT = 16 * 1024 * 1024;

/** Parses Server-Sent Events (`text/event-stream`) from pieces that may end anywhere. */
export class SseParser {
  #rest = '';
  #type = '';
  #data: string[] = [];
  #size = 0;
  /**
   * Whether the last piece ended with a carriage return. A line feed directly after it belongs to the same line break.
   */
  #afterReturn = false;

  /** Returns the events that end within `piece`. Throws an Error if an event is too long. */
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
    if (this.#rest.length + this.#size > MAX_EVENT) throw new Error('an event is too long');
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
