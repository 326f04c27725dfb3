/**
 * A text of ASCII characters in parts. Encoding the parts is faster than encoding their concatenation, which V8 copies
 * once more before anything can read it.
 */
export class TextParts {
  readonly parts: readonly string[];

  constructor(parts: readonly string[]) {
    this.parts = parts;
  }

  toString(): string {
    return this.parts.join('');
  }

  toJSON(): string {
    return this.toString();
  }
}
