import { RE2JS } from 're2js';

/**
 * A regular expression of Go (https://pkg.go.dev/regexp/syntax). Names of statistics may contain strings from callers,
 * so matching must take linear time. JavaScript's own engine takes minutes for `(.*)\.(.*)\.(.*)\.(.*)\.x` on 512 dots.
 */
export class GoRegExp {
  readonly source: string;
  private readonly compiled: RE2JS;

  /** Throws an Error for an invalid expression; see {@link compileGoRegExp}. */
  constructor(source: string) {
    this.source = source;
    this.compiled = RE2JS.compile(source);
  }

  /** Like RegExp.exec. */
  exec(text: string): RegExpExecArray | null {
    return this.compiled.exec(text) as RegExpExecArray | null;
  }
}

/** Compiles an expression, or returns a sentence with the error if it is invalid. */
export function compileGoRegExp(pattern: string): GoRegExp | string {
  try {
    return new GoRegExp(pattern);
  } catch (error) {
    return (error as Error).message.replace(/^error parsing regexp: /, '');
  }
}
