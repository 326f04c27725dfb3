import { RE2JS } from 're2js';

/**
 * A regular expression of Go (https://pkg.go.dev/regexp/syntax). Names of statistics may hold what a caller put there,
 * so it matters that a match takes a time that grows with the text alone: JavaScript's own engine takes minutes for
 * `(.*)\.(.*)\.(.*)\.(.*)\.x` on 512 dots.
 */
export class GoRegExp {
  readonly source: string;
  private readonly compiled: RE2JS;

  /** Throws an Error for what is no regular expression; see {@link compileGoRegExp}. */
  constructor(source: string) {
    this.source = source;
    this.compiled = RE2JS.compile(source);
  }

  /** The first match in the text, with its groups, as RegExp.exec gives it. */
  exec(text: string): RegExpExecArray | null {
    return this.compiled.exec(text) as RegExpExecArray | null;
  }
}

/** Returns a sentence for what is no regular expression of Go. */
export function compileGoRegExp(pattern: string): GoRegExp | string {
  try {
    return new GoRegExp(pattern);
  } catch (error) {
    return (error as Error).message.replace(/^error parsing regexp: /, '');
  }
}
