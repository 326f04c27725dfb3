import { chooseFormat, describeLines, memberNames, sampleOf } from '../choose-format.js';
import type { Operator } from '../format-string.js';
import { DECIDED_AT, type LogFormat, START_TIME } from '../log-format.js';
import { LogError, type LogOptions, MAX_UNREADABLE, WINDOW_MICROS } from '../logged-request.js';
import { LogFile } from './log-file.js';
import { LogSource } from './log-source.js';
import { type PackedBatch, RequestReader } from './request-reader.js';

/** Maximum number of files, which are open at the same time. */
export const MAX_FILES = 500;

/** A file, with the chunks that chose its format. */
interface OpenFile {
  readonly source: LogSource;
  readonly head: readonly Buffer[];
  /** Undefined for an empty file. */
  readonly format: LogFormat | undefined;
  /** Names of the members of its first lines, if they are JSON. */
  readonly members: readonly string[];
}

/** The files of a log, whose formats are known. */
export class LogFiles {
  readonly #files: readonly OpenFile[];
  readonly #options: LogOptions;

  private constructor(files: readonly OpenFile[], options: LogOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** Opens the files, and chooses the format of each by its first lines. Throws {@link LogError}. */
  static async open(options: LogOptions): Promise<LogFiles> {
    const { paths } = options;
    if (paths.length > MAX_FILES)
      throw new LogError(
        `the log has ${paths.length} files, more than the maximum of ${MAX_FILES}; join some of them`,
      );
    const sources: LogSource[] = [];
    try {
      // All paths are checked before the first file is read.
      for (const path of paths) sources.push(await openOnce(path, sources));
      const files: OpenFile[] = [];
      for (const source of sources) files.push(await openFile(source, options));
      const opened = new LogFiles(files, options);
      if (opened.formats.length === 0) throw new LogError(`${paths.join(', ')}: the log has no lines`);
      return opened;
    } catch (error) {
      for (const source of sources) source.close();
      throw error;
    }
  }

  /** The formats of the files, each once. */
  get formats(): readonly LogFormat[] {
    return [...new Set(this.#files.flatMap(({ format }) => format ?? []))];
  }

  /** The members of the first lines of all files. */
  get members(): readonly string[] {
    return [...new Set(this.#files.flatMap(({ members }) => members))];
  }

  /** Reads the values of `operators`. Throws {@link LogError}. */
  read(operators: readonly Operator[]): AsyncGenerator<PackedBatch> {
    const { windowMicros = WINDOW_MICROS, maxUnreadable = MAX_UNREADABLE, slackMicros = 0 } = this.#options;
    const [anyFormat] = this.formats;
    const files = this.#files.flatMap(({ source, head, format = anyFormat }) =>
      format === undefined ? [] : new LogFile(source, head, format, { operators, slackMicros }),
    );
    const { statedShare } = this.#options;
    return new RequestReader(files, {
      columns: operators.length,
      windowMicros,
      maxUnreadable,
      ...(statedShare !== undefined && { statedShare }),
    }).read();
  }
}

/** Opens a file that is not one of `opened`. A file that is read twice would have all requests twice. */
async function openOnce(path: string, opened: readonly LogSource[]): Promise<LogSource> {
  const source = await LogSource.open(path);
  const same = opened.find(({ identity }) => identity === source.identity);
  if (same === undefined) return source;
  source.close();
  throw new LogError(
    same.path === path
      ? `${source.name} is named twice; name each log once`
      : `${same.name} and ${source.name} are the same file; name only one of them`,
  );
}

async function openFile(source: LogSource, { formats, onlyFormats = false }: LogOptions): Promise<OpenFile> {
  const head: Buffer[] = [];
  let atEnd = false;
  // A pipe may deliver less than a line.
  while (!head.at(-1)?.includes('\n')) {
    const chunk = await source.next(0);
    atEnd = chunk === undefined;
    if (chunk === undefined) break;
    head.push(chunk);
  }
  const lines = sampleOf(Buffer.concat(head), atEnd);
  if (lines.length === 0) return { source, head, format: undefined, members: [] };
  const format = chooseFormat(lines, formats, onlyFormats);
  if (format === undefined) {
    const timeless = formats.find(
      ({ operators }) => !operators.has(START_TIME) && !operators.has(DECIDED_AT),
    );
    if (timeless !== undefined)
      throw new LogError(`${source.name}: ${timeless.title} has no time; add %START_TIME% to the access_log`);
    const titles = formats.map(({ title }) => title);
    const tried = [...titles, ...(onlyFormats ? [] : ['a known format'])].join(' or ');
    throw new LogError(
      `${source.name} does not have ${tried}: ${describeLines(lines, formats)}; name the format with --log-format, ` +
        'or with a mapping from weir replay --init',
    );
  }
  return { source, head, format, members: memberNames(lines) };
}
