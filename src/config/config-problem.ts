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
}

/** One line for people: `policy.yaml:7:5: descriptors[0].key: the key is empty; …`. */
export function formatProblem(problem: ConfigProblem): string {
  const position = problem.line === 0 ? '' : `:${problem.line}:${problem.column}`;
  const path = problem.path === '' ? '' : `${problem.path}: `;
  return `${problem.file}${position}: ${path}${problem.message}`;
}

/** Collects what is wrong in one file, so that one run tells everything. */
export class ProblemList {
  readonly file: string;
  readonly errors: ConfigProblem[] = [];
  readonly warnings: ConfigProblem[] = [];
  private readonly settled = new Set<string>();

  constructor(file: string) {
    this.file = file;
  }

  /** Says no more about a place: what stands there has been reported and cannot be known, so more would be guessed. */
  settle(at: Position): void {
    this.settled.add(placeOf(at));
  }

  error(at: Position, path: string, message: string): void {
    if (this.settled.has(placeOf(at))) return;
    this.errors.push(this.problem(at, path, message));
  }

  /** Puts everything into the order of the file, so that an editor can walk through it. */
  sort(): void {
    const order = (a: ConfigProblem, b: ConfigProblem): number => a.line - b.line || a.column - b.column;
    this.errors.sort(order);
    this.warnings.sort(order);
  }

  warn(at: Position, path: string, message: string): void {
    if (this.settled.has(placeOf(at))) return;
    this.warnings.push(this.problem(at, path, message));
  }

  private problem({ line, column }: Position, path: string, message: string): ConfigProblem {
    return { file: this.file, line, column, path: visible(path), message: visible(message) };
  }
}

/** A place in a file, both 1-based; 0, 0 is the file as a whole. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Messages repeat what the file says: on one line, and without codes that a terminal obeys. */
function visible(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u2028\u2029]/gu,
    (code) => `\\u${(code.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}

function placeOf({ line, column }: Position): string {
  return `${line}:${column}`;
}

/** The file as a whole, where no line can be named. */
export const WHOLE_FILE: Position = { line: 0, column: 0 };
