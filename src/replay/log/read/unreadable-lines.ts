import { printableLine } from '../../../printable.js';
import { quantity } from '../../../quantity.js';
import { utf8Of } from '../lines/byte-text.js';
import type { LineFault } from '../lines/line-fields.js';
import { LogError, type UnreadableLines } from '../logged-request.js';

const REASONS: Readonly<Record<LineFault, string>> = {
  not_json: 'is not JSON',
  not_an_object: 'is not a JSON object',
  other_format: 'does not have the format of the log',
  too_long: 'is longer than 1 MiB',
  no_time: 'has no time that can be read',
  no_descriptors: 'has no "domain" with "descriptors"',
  bad_number: 'has hits, or a limit, that are not a whole number from 0 to 4294967295',
  cut: 'is marked as "cut", so parts of the request are missing',
};

const EXAMPLE_CHARACTERS = 120;
/** Fewer lines do not show yet which share cannot be read. */
const JUDGED_LINES = 1000;
/** A log may be cut at both ends. */
const CUT_LINES = 2;

/** Counts lines that cannot be read. */
export class UnreadableCounts {
  count = 0;
  readonly #maxShare: number;
  readonly #files: number;
  readonly #kinds = new Map<LineFault, { lines: number; readonly example: string }>();

  constructor(maxShare: number, files: number) {
    this.#maxShare = maxShare;
    this.#files = files;
  }

  /** Counts a line, which has one character for each byte. */
  add(fault: LineFault, file: string, lineNumber: number, line: string): void {
    this.count++;
    const kind = this.#kinds.get(fault);
    if (kind === undefined)
      this.#kinds.set(fault, { lines: 1, example: `${file}:${lineNumber}: ${excerpt(line)}` });
    else kind.lines++;
  }

  get list(): readonly UnreadableLines[] {
    const kinds = [...this.#kinds].map(([fault, counts]) => ({ reason: REASONS[fault], ...counts }));
    return kinds.sort((a, b) => b.lines - a.lines);
  }

  /** Throws {@link LogError} if too many of `lines` cannot be read. `atEnd`: all lines were read. */
  check(lines: number, atEnd: boolean): void {
    if (lines < JUDGED_LINES && !atEnd) return;
    const isAll = atEnd && this.count === lines && lines > 0;
    const isMore = this.count > CUT_LINES * this.#files && this.count > this.#maxShare * lines;
    if (!isMore && !isAll) return;
    const share = `${this.count} of the first ${quantity(lines, 'line')} cannot be read`;
    const kinds = this.list.map(
      (kind) => `${quantity(kind.lines, 'line')}: it ${kind.reason}, as in ${kind.example}`,
    );
    throw new LogError(
      `${share}, more than ${percent(this.#maxShare)}; name the format with --log-format, or allow more with ` +
        `--max-unreadable\n${kinds.map((kind) => `  ${kind}`).join('\n')}`,
    );
  }
}

function percent(share: number): string {
  return `${Math.round(share * 10_000) / 100}%`;
}

/** Names of values that are secrets, and their values. */
const SECRET =
  /((?:authorization|cookie|[\w-]*(?:key|token|secret|passw(?:or)?d|signature)[\w-]*)["']?\s*[:=]\s*["']?(?:(?:bearer|basic)\s+)?)[^\s"'&,;]+/gi;
/** Long words with digits, such as API keys and signatures. */
const LONG_WORD = /(?=[\w+=.-]*\d)[\w+=-][\w+=.-]{19,}/g;

/** Returns the beginning of a line, without its secrets. */
export function excerpt(line: string): string {
  const text = utf8Of(line.slice(0, 4 * EXAMPLE_CHARACTERS));
  const safe = text.replaceAll(SECRET, '$1[redacted]').replaceAll(LONG_WORD, '[redacted]');
  const characters = [...safe];
  const cut =
    characters.length > EXAMPLE_CHARACTERS
      ? `${characters.slice(0, EXAMPLE_CHARACTERS - 1).join('')}…`
      : safe;
  return printableLine(cut);
}
