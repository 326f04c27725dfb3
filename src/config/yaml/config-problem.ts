import { printableLine } from '../../printable.js';
import { quantity } from '../../quantity.js';

/** Something wrong, or worth knowing, in a file of the policy. */
export interface ConfigProblem {
  /** The file as the user named it, or found in a directory the user named. */
  readonly file: string;
  /** 1-based; 0 when the problem is the file itself (missing, too large, not text). */
  readonly line: number;
  /** 1-based, in characters; 0 together with `line` 0. */
  readonly column: number;
  /** Where in the document: `descriptors[0].rate_limit.unit`; '' for the document itself. Never holds a secret. */
  readonly path: string;
  /** A sentence that says what is wrong and what to do. Never holds a secret. */
  readonly message: string;
  /** How many problems it stands for; 1 when absent. */
  readonly count?: number;
}

/** How many problems a list is about, those that are only counted included. */
export function countProblems(problems: readonly ConfigProblem[]): number {
  return problems.reduce((sum, { count = 1 }) => sum + count, 0);
}

/** Problems that ask for the same remedy. */
export interface ProblemGroup {
  /** The field and the message, without what differs from place to place: texts in quotes, and numbers. */
  readonly kind: string;
  readonly first: ConfigProblem;
  readonly count: number;
}

/** Problems by kind, each kind where its first problem was. */
export function groupProblems(problems: readonly ConfigProblem[]): readonly ProblemGroup[] {
  const groups = new Map<string, ProblemGroup>();
  for (const problem of problems) {
    const field = problem.path.slice(problem.path.lastIndexOf('.') + 1);
    const kind = `${field}: ${problem.message}`.replaceAll(/"[^"]*"|\d+/g, '…');
    const { first = problem, count = 0 } = groups.get(kind) ?? {};
    groups.set(kind, { kind, first, count: count + 1 });
  }
  return [...groups.values()];
}

/** One line for people: `policy.yaml:7:5: descriptors[0].key: the key is empty; …`. */
export function formatProblem(problem: ConfigProblem): string {
  const position = problem.line === 0 ? '' : `:${problem.line}:${problem.column}`;
  const path = problem.path === '' ? '' : `${problem.path}: `;
  return printableLine(`${problem.file}${position}: ${path}${problem.message}`);
}

/** Most errors, and most warnings, that are kept of one file, and of one load: who mends so many may well ask again. */
export const MAX_PROBLEMS = 1000;
/** So much of a path and of a message is kept, characters: both repeat what the file says. */
const MAX_TEXT = 2000;

/** Collects what is wrong in one file, so that one run tells everything, up to {@link MAX_PROBLEMS}. */
export class ProblemList {
  readonly file: string;
  readonly errors: ConfigProblem[] = [];
  readonly warnings: ConfigProblem[] = [];
  /** How many there are, those not kept included. */
  errorCount = 0;
  warningCount = 0;
  private readonly closedPlaces = new Set<string>();
  private readonly within: string;

  /** `within`: where the text lies in the file's document, where it is a part of one: `data["shop.yaml"]`. */
  constructor(file: string, within = '') {
    this.file = file;
    this.within = within;
  }

  /** Says no more about a place: what stands there has been reported and cannot be known, so more would be guessed. */
  closePlace(at: Position): void {
    this.closedPlaces.add(placeOf(at));
  }

  error(at: Position, path: string, message: string): void {
    if (this.closedPlaces.has(placeOf(at))) return;
    if (this.errorCount++ < MAX_PROBLEMS) this.errors.push(this.problem(at, path, message));
  }

  /** Puts everything into the order of the file, so that an editor can walk through it. */
  sort(): void {
    const order = (a: ConfigProblem, b: ConfigProblem): number => a.line - b.line || a.column - b.column;
    this.errors.sort(order);
    this.warnings.sort(order);
  }

  warn(at: Position, path: string, message: string): void {
    if (this.closedPlaces.has(placeOf(at))) return;
    if (this.warningCount++ < MAX_PROBLEMS) this.warnings.push(this.problem(at, path, message));
  }

  private problem({ line, column }: Position, path: string, message: string): ConfigProblem {
    const joined = this.within === '' || path === '' || path.startsWith('[') ? path : `.${path}`;
    return { file: this.file, line, column, path: shown(this.within + joined), message: shown(message) };
  }
}

/**
 * The first of `problems` that are `total` altogether, and how many more there are in the place of the rest. `what`:
 * `errors` or `warnings`.
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
  const message = `and ${quantity(count, `more ${what}`)}, not listed`;
  return [...kept, { file: last.file, ...WHOLE_FILE, path: '', message, count }];
}

/** A place in a file, both 1-based; 0, 0 is the file as a whole. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

function shown(text: string): string {
  return printableLine(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text);
}

function placeOf({ line, column }: Position): string {
  return `${line}:${column}`;
}

/** The file as a whole, where no line can be named. */
export const WHOLE_FILE: Position = { line: 0, column: 0 };
