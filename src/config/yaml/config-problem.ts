import { printableLine } from '../../runtime/printable.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { plural } from '../../runtime/texts.js';

/** An error or warning about a file of the policy. */
export interface ConfigProblem {
  /** Name of the file as given by the user, or as found in a directory that the user named. */
  readonly file: string;
  /** 1-based line; 0 if the problem concerns the whole file (missing, too large, not text). */
  readonly line: number;
  /** 1-based column in characters; 0 if `line` is 0. */
  readonly column: number;
  /**
   * Path in the document, such as `descriptors[0].rate_limit.unit`; '' for the document itself. Never contains a
   * secret.
   */
  readonly path: string;
  /** A sentence with the problem and the remedy. Never contains a secret. */
  readonly message: string;
  /** Number of problems that this entry summarizes; 1 if absent. */
  readonly count?: number;
}

/** The number of problems, including those that are only counted. */
export function countProblems(problems: readonly ConfigProblem[]): number {
  return problems.reduce((sum, { count = 1 }) => sum + count, 0);
}

/** Formats a problem as one line: `policy.yaml:7:5: descriptors[0].key: the key is empty; …`. */
export function formatProblem(problem: ConfigProblem): string {
  const position = problem.line === 0 ? '' : `:${problem.line}:${problem.column}`;
  const path = problem.path === '' ? '' : `${problem.path}: `;
  return printableLine(withoutAddressSecrets(`${problem.file}${position}: ${path}${problem.message}`));
}

/** Maximum number of errors, and of warnings, that are kept per file and per load. */
export const MAX_PROBLEMS = 1000;
/** Maximum number of characters kept of a path and a message, which both repeat text from the file. */
const MAX_TEXT = 2000;

/** Collects the problems of one file, up to {@link MAX_PROBLEMS}, so that one run reports all of them. */
export class ProblemList {
  readonly file: string;
  readonly errors: ConfigProblem[] = [];
  readonly warnings: ConfigProblem[] = [];
  /** Number of errors, including those that are not kept. */
  errorCount = 0;
  warningCount = 0;
  /** Whether an error was added with {@link refuse}. */
  refusesStart = false;
  private readonly ignoredPositions = new Set<string>();
  private readonly within: string;
  /** Directory of other files that the text names; undefined for the directory of the file. */
  readonly folder: string | undefined;

  /** `within`: path of the text in the file's document if the text is a part of one, such as `data["shop.yaml"]`. */
  constructor(file: string, within = '', folder?: string) {
    this.file = file;
    this.within = within;
    this.folder = folder;
  }

  /**
   * Ignores later problems at this position. The value there is already reported and unknown, so further messages would
   * be guesses.
   */
  ignorePosition(at: Position): void {
    this.ignoredPositions.add(placeOf(at));
  }

  error(at: Position, path: string, message: string): void {
    if (this.ignoredPositions.has(placeOf(at))) return;
    if (this.errorCount++ < MAX_PROBLEMS) this.errors.push(this.problem(at, path, message));
  }

  /** Adds an error with which a server must not start, even if other domains are valid. */
  refuse(at: Position, path: string, message: string): void {
    this.refusesStart = true;
    this.error(at, path, message);
  }

  /** Sorts the problems by their position in the file, so that an editor can step through them. */
  sort(): void {
    const order = (a: ConfigProblem, b: ConfigProblem): number => a.line - b.line || a.column - b.column;
    this.errors.sort(order);
    this.warnings.sort(order);
  }

  warn(at: Position, path: string, message: string): void {
    if (this.ignoredPositions.has(placeOf(at))) return;
    if (this.warningCount++ < MAX_PROBLEMS) this.warnings.push(this.problem(at, path, message));
  }

  /** Adds the problems that another domain found in the same file, unless they are known. */
  addMissing({ errors, warnings }: Pick<ProblemList, 'errors' | 'warnings'>): void {
    const known = new Set([...this.errors, ...this.warnings].map(formatProblem));
    const isNew = (problem: ConfigProblem): boolean => !known.has(formatProblem(problem));
    for (const { path, message, ...at } of errors.filter(isNew)) this.error(at, path, message);
    for (const { path, message, ...at } of warnings.filter(isNew)) this.warn(at, path, message);
  }

  private problem({ line, column }: Position, path: string, message: string): ConfigProblem {
    const joined = this.within === '' || path === '' || path.startsWith('[') ? path : `.${path}`;
    return {
      file: withoutAddressSecrets(this.file),
      line,
      column,
      path: shown(this.within + joined),
      message: shown(message),
    };
  }
}

/**
 * Returns the first of `problems`, with an entry that counts the rest. `total` is their number, including those not
 * kept.
 */
export function boundProblems(
  problems: readonly ConfigProblem[],
  total: number,
  what: 'error' | 'warning',
): readonly ConfigProblem[] {
  const kept = problems.length <= MAX_PROBLEMS ? problems : problems.slice(0, MAX_PROBLEMS);
  const last = kept.at(-1);
  if (last === undefined || total <= kept.length) return kept;
  const count = total - kept.length;
  const message = `and ${plural(count, `more ${what}`)}, not listed`;
  return [...kept, { file: last.file, ...WHOLE_FILE, path: '', message, count }];
}

/** A position in a file, both 1-based; 0, 0 is the whole file. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

function shown(text: string): string {
  const safe = withoutAddressSecrets(text);
  return printableLine(safe.length > MAX_TEXT ? `${safe.slice(0, MAX_TEXT)}...` : safe);
}

function placeOf({ line, column }: Position): string {
  return `${line}:${column}`;
}

/** The whole file, for problems without a known line. */
export const WHOLE_FILE: Position = { line: 0, column: 0 };
