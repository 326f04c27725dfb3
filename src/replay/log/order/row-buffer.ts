import { ABSENT, DECODED, type LineFields } from '../lines/line-fields.js';

/** Ends a value. No header of HTTP contains it. */
export const SEPARATOR = 0x00;
/** A value that is the empty string. A value without bytes does not exist. */
export const EMPTY_VALUE = 0x01;
const REPLACEMENT = 0x20;

const FIRST_ROWS = 16;
const FIRST_BYTES = 1024;

/** Requests as numbers and bytes, which take less memory than objects and cross to another thread at no cost. */
export class RowBuffer {
  /** Number of requests. */
  count = 0;
  /** Number of bytes of all values. */
  length = 0;
  /** Start and precision of each request in microseconds. */
  #times = new Float64Array(2 * FIRST_ROWS);
  /** End of the values of each request. */
  #ends = new Uint32Array(FIRST_ROWS);
  /** The values of all requests, each with a {@link SEPARATOR} after it. */
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);

  /** Adds the values of a line, which begins at `base` in `lines`. */
  add(
    startMicros: number,
    precisionMicros: number,
    lines: Buffer,
    base: number,
    fields: LineFields,
    columns: number,
  ): void {
    let most = columns * 2;
    for (let i = 0; i < columns; i++) {
      const from = fields.from[i] as number;
      if (from >= 0) most += (fields.to[i] as number) - from;
      else if (from === DECODED) most += 3 * (fields.decoded[i] as string).length;
    }
    this.#reserve(most);
    const bytes = this.#bytes;
    let at = this.length;
    for (let i = 0; i < columns; i++) {
      const from = fields.from[i] as number;
      if (from !== ABSENT) {
        const first = at;
        if (from === DECODED) at += writeText(bytes, fields.decoded[i] as string, at);
        else {
          const end = base + (fields.to[i] as number);
          for (let j = base + from; j < end; j++) {
            const byte = lines[j] as number;
            bytes[at++] = byte === SEPARATOR ? REPLACEMENT : byte;
          }
        }
        if (at === first) bytes[at++] = EMPTY_VALUE;
      }
      bytes[at++] = SEPARATOR;
    }
    this.length = at;
    this.#end(startMicros, precisionMicros);
  }

  /** Moves the requests to another buffer, in the order of their start. `startMicros` replaces the start of all. */
  moveTo(target: RowBuffer, startMicros?: number): void {
    const { count } = this;
    if (this.#isSorted()) for (let i = 0; i < count; i++) target.#copy(this, i, startMicros);
    else for (const i of this.#sortedIndexes()) target.#copy(this, i, startMicros);
    this.clear();
  }

  /** Start of the last request in microseconds. */
  get lastMicros(): number {
    return this.#times[2 * (this.count - 1)] as number;
  }

  /** Earliest start in microseconds. */
  get earliestMicros(): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.count; i++) earliest = Math.min(earliest, this.#times[2 * i] as number);
    return earliest;
  }

  clear(): void {
    this.count = 0;
    this.length = 0;
  }

  /** Returns the requests in new arrays, and empties this buffer. */
  take(): PackedRequests {
    const rows = {
      count: this.count,
      times: this.#times.slice(0, 2 * this.count),
      ends: this.#ends.slice(0, this.count),
      bytes: new Uint8Array(this.#bytes.subarray(0, this.length)),
    };
    this.clear();
    return rows;
  }

  #isSorted(): boolean {
    for (let i = 2; i < 2 * this.count; i += 2)
      if ((this.#times[i] as number) < (this.#times[i - 2] as number)) return false;
    return true;
  }

  /** Returns the indexes by start. Requests with the same start keep their order. */
  #sortedIndexes(): readonly number[] {
    const order = Array.from({ length: this.count }, (_, i) => i);
    return order.sort((a, b) => (this.#times[2 * a] as number) - (this.#times[2 * b] as number));
  }

  #copy(source: RowBuffer, row: number, startMicros = source.#times[2 * row] as number): void {
    const from = row === 0 ? 0 : (source.#ends[row - 1] as number);
    const to = source.#ends[row] as number;
    this.#reserve(to - from);
    this.#bytes.set(source.#bytes.subarray(from, to), this.length);
    this.length += to - from;
    this.#end(startMicros, source.#times[2 * row + 1] as number);
  }

  #end(startMicros: number, precisionMicros: number): void {
    const { count } = this;
    this.#times[2 * count] = startMicros;
    this.#times[2 * count + 1] = precisionMicros;
    this.#ends[count] = this.length;
    this.count++;
  }

  /** Makes room for one more request with this many bytes. */
  #reserve(bytes: number): void {
    if (this.count === this.#ends.length) {
      const ends = new Uint32Array(2 * this.count);
      ends.set(this.#ends);
      this.#ends = ends;
      const times = new Float64Array(4 * this.count);
      times.set(this.#times);
      this.#times = times;
    }
    const needed = this.length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    larger.set(this.#bytes.subarray(0, this.length));
    this.#bytes = larger;
  }
}

/** Requests for another thread. */
export interface PackedRequests {
  readonly count: number;
  readonly times: Float64Array<ArrayBuffer>;
  /** End of the values of each request in {@link bytes}. */
  readonly ends: Uint32Array<ArrayBuffer>;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

function writeText(bytes: Buffer, text: string, at: number): number {
  return bytes.write(text.replaceAll('\0', ' '), at, 'utf8');
}
