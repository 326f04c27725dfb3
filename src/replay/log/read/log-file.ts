import type { Operator } from '../format-string.js';
import { ABSENT, DECODED, type LineFault, LineFields, type LineReader } from '../lines/line-fields.js';
import { lineReader } from '../lines/line-reader.js';
import { TimeReader } from '../lines/time-reader.js';
import { DECIDED_AT, type LogFormat, REQUEST_ID, START_TIME, WEIR_SAMPLE } from '../log-format.js';
import type { SamplingEvidence } from '../sampling/sampling.js';
import { LineSplitter, type Lines } from './line-splitter.js';
import type { LogSource } from './log-source.js';

/** Starts of which the median is the clock of a file. */
const CLOCK_STARTS = 255;
/** Fewer starts do not set the clock, because one wrong start would. */
const LEAST_STARTS = 32;

const CARRIAGE_RETURN = 0x0d;

/** Receives the requests and the other lines of a file. */
export interface LineSink {
  /** Adds a request. Its values are `fields`, of the line that begins at `base` in `lines`. */
  add(startMicros: number, precisionMicros: number, lines: Buffer, base: number, fields: LineFields): void;
  addUnreadable(fault: LineFault, file: LogFile, line: string): void;
  addSkipped(): void;
  readonly sampling: SamplingEvidence;
}

/** Options that are equal for all files. */
export interface LineOptions {
  readonly operators: readonly Operator[];
  /** Added to the precision of a start time: the longest time from the start to weir's decision. */
  readonly slackMicros: number;
}

/** Operators that are read from each line, after those of the replay. */
const OWN_OPERATORS: readonly Operator[] = [START_TIME, DECIDED_AT, REQUEST_ID, WEIR_SAMPLE];

/** Returns the operators that are read from each line, in the order of {@link LogFile.seen}. */
export function readOperators(operators: readonly Operator[]): readonly Operator[] {
  return [...operators, ...OWN_OPERATORS];
}

/** A file that is read line by line. */
export class LogFile {
  readonly source: LogSource;
  /** Number of lines so far, with empty ones. */
  lineNumber = 0;
  /** Number of lines so far, without empty ones. */
  lines = 0;
  /** Median of the latest starts; -Infinity before there are enough of them. */
  clockMicros = Number.NEGATIVE_INFINITY;
  readonly #splitter = new LineSplitter();
  readonly #starts = new Float64Array(CLOCK_STARTS);
  #startCount = 0;
  readonly #read: LineReader;
  readonly #fields: LineFields;
  readonly #times = new TimeReader();
  readonly #startColumn: number;
  readonly #decidedColumn: number;
  readonly #idColumn: number;
  readonly #sampleColumn: number;
  readonly #slackMicros: number;
  /** Chunks that were read before the format was known. */
  readonly #head: Buffer[];

  constructor(source: LogSource, head: readonly Buffer[], format: LogFormat, options: LineOptions) {
    this.source = source;
    this.#head = [...head];
    const operators = readOperators(options.operators);
    this.#read = lineReader(format, operators);
    this.#fields = new LineFields(operators.length);
    this.#startColumn = options.operators.length;
    this.#decidedColumn = this.#startColumn + 1;
    this.#idColumn = this.#startColumn + 2;
    this.#sampleColumn = this.#startColumn + 3;
    this.#slackMicros = options.slackMicros;
  }

  /** Number of descriptors that end holds, and were left out. */
  get holdEnds(): number {
    return this.#fields.holdEnds;
  }

  /** Presence of each value in the lines so far, as {@link LineFields.seen}. */
  get seen(): Uint8Array {
    return this.#fields.seen;
  }

  /** Reads some lines into `sink`. Returns false at the end of the file. Throws {@link LogError}. */
  async read(sink: LineSink): Promise<boolean> {
    const chunk = this.#head.shift() ?? (await this.source.next(this.lineNumber));
    this.#readLines(chunk === undefined ? this.#splitter.end() : this.#splitter.split(chunk), sink);
    this.#setClock();
    return chunk !== undefined;
  }

  #readLines({ bytes, text, tooLong }: Lines, sink: LineSink): void {
    let at = 0;
    while (at < text.length) {
      const found = text.indexOf('\n', at);
      const end = found < 0 ? text.length : found;
      this.lineNumber++;
      const last = text.charCodeAt(end - 1) === CARRIAGE_RETURN ? end - 1 : end;
      if (last > at) this.#readLine(text.slice(at, last), bytes, at, sink);
      at = end + 1;
    }
    for (let i = 0; i < tooLong; i++) {
      this.lineNumber++;
      this.lines++;
      sink.addUnreadable('too_long', this, '');
    }
  }

  #readLine(line: string, bytes: Buffer, base: number, sink: LineSink): void {
    this.lines++;
    const fields = this.#fields;
    const fault = this.#read(line, fields) ?? this.#readTime(line);
    if (fault === undefined) {
      const { micros, precisionMicros } = this.#times;
      this.#starts[this.#startCount++ % CLOCK_STARTS] = micros;
      sink.add(micros, precisionMicros, bytes, base, fields);
      this.#addEvidence(line, sink.sampling);
    } else if (fault === 'skipped') sink.addSkipped();
    else sink.addUnreadable(fault, this, line);
  }

  #addEvidence(line: string, sampling: SamplingEvidence): void {
    const id = this.#fields.text(this.#idColumn, line);
    if (id !== undefined) sampling.addRequestId(id);
    const sample = this.#fields.text(this.#sampleColumn, line);
    if (sample !== undefined) sampling.addSample(sample);
  }

  /** Reads the time of weir's decision, or else the start time with the slack. */
  #readTime(line: string): LineFault | undefined {
    const times = this.#times;
    if (this.#fields.from[this.#decidedColumn] !== ABSENT) {
      const decided = withoutQuotes(this.#fields.text(this.#decidedColumn, line) ?? '');
      if (times.read(decided, 0, decided.length)) return undefined;
    }
    const from = this.#fields.from[this.#startColumn] as number;
    if (from === ABSENT) return 'no_time';
    const text = from === DECODED ? (this.#fields.decoded[this.#startColumn] as string) : line;
    const isTime =
      from === DECODED
        ? times.read(text, 0, text.length)
        : times.read(line, from, this.#fields.to[this.#startColumn] as number);
    if (!isTime) return 'no_time';
    times.precisionMicros += this.#slackMicros;
    return undefined;
  }

  #setClock(): void {
    if (this.#startCount < LEAST_STARTS) return;
    const starts = this.#starts.slice(0, Math.min(this.#startCount, CLOCK_STARTS)).sort();
    this.clockMicros = starts[starts.length >> 1] as number;
  }
}

/** Envoy writes quotes around a text of dynamic metadata if the log is text. */
function withoutQuotes(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1) : text;
}
