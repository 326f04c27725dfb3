import { utf8Of } from './byte-text.js';

/** Why a line cannot be read. */
export type LineFault =
  | 'not_json'
  | 'not_an_object'
  | 'other_format'
  | 'too_long'
  | 'no_time'
  | 'no_descriptors'
  | 'bad_number'
  | 'cut';

/**
 * Reads one line into `fields`. The line has one character for each byte. Returns why the line cannot be read, or
 * `skipped` for a line that describes no request.
 */
export type LineReader = (line: string, fields: LineFields) => LineFault | 'skipped' | undefined;

/** `from` of a value that does not exist. */
export const ABSENT = -1;
/** `from` of a value that is not a part of the line. */
export const DECODED = -2;

const DASH = 0x2d;

/** `seen` of a column: its member occurs in a line, perhaps without a value; one of its values exists. */
export const OCCURS = 1;
export const HAS_VALUE = 2;

/** The values of a line by column: as positions in the line, which are positions of its bytes, or as texts. */
export class LineFields {
  /** Position of the first character, {@link ABSENT} or {@link DECODED}. */
  readonly from: Int32Array;
  /** Position after the last character. */
  readonly to: Int32Array;
  /** The values with {@link DECODED}. */
  readonly decoded: string[];
  /** For each column, whether a line so far had its member ({@link OCCURS}) or a value ({@link HAS_VALUE}). */
  readonly seen: Uint8Array;
  /** Number of descriptors that end holds in all lines so far. The lines are read without them. */
  holdEnds = 0;

  constructor(columns: number) {
    this.seen = new Uint8Array(columns);
    this.from = new Int32Array(columns).fill(ABSENT);
    this.to = new Int32Array(columns);
    this.decoded = new Array<string>(columns).fill('');
  }

  /** Sets a value to a part of the line. Envoy writes a dash for a value that does not exist. */
  set(column: number, line: string, from: number, to: number): void {
    const isAbsent = to === from + 1 && line.charCodeAt(from) === DASH;
    this.from[column] = isAbsent ? ABSENT : from;
    this.to[column] = to;
    if (!isAbsent) this.seen[column] = HAS_VALUE;
    else this.occurs(column);
  }

  /** Records that the member of a column occurs, perhaps without a value. */
  occurs(column: number): void {
    if (this.seen[column] === 0) this.seen[column] = OCCURS;
  }

  setText(column: number, text: string | undefined): void {
    const isAbsent = text === undefined || text === '-';
    this.from[column] = isAbsent ? ABSENT : DECODED;
    this.decoded[column] = isAbsent ? '' : text;
    if (!isAbsent) this.seen[column] = HAS_VALUE;
  }

  clear(): void {
    this.from.fill(ABSENT);
  }

  /** Returns a value. `line` is the line that was read. */
  text(column: number, line: string): string | undefined {
    const from = this.from[column] as number;
    if (from === ABSENT) return undefined;
    return from === DECODED ? this.decoded[column] : utf8Of(line.slice(from, this.to[column]));
  }
}
