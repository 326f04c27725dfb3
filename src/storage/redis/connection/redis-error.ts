/** What Redis tells of a command that it does not know: its arguments, and those of AUTH are the login. */
const ARGUMENTS = /, with args beginning with: .*/s;

/** What begins the words about a proxy that answers where Redis was expected; see expect-server.ts. */
export const IS_PROXY = 'a proxy answers there:';

/** What Redis said, without the arguments that it was given: a Redis whose AUTH is renamed tells the password. */
export function withoutArguments(text: string): string {
  return text.replace(ARGUMENTS, '');
}

/** Redis answered a command with an error (RESP2, "Simple errors"). */
export class RedisReplyError extends Error {
  override readonly name = 'RedisReplyError';
  /** The word in capitals that it begins with, such as `NOSCRIPT`, `READONLY`, `ERR`. */
  readonly code: string;

  /** `text` is the line that Redis sent; the message is that {@link withoutArguments}. */
  constructor(text: string) {
    super(withoutArguments(text));
    this.code = /^[A-Z]+/.exec(text)?.[0] ?? '';
  }
}

/** Redis answered, and what it said is no answer of the script. */
export class UnknownReplyError extends Error {
  override readonly name = 'UnknownReplyError';

  constructor() {
    super('the script answered in an unknown form');
  }
}

/** Whether Redis answered, in contrast to errors of the connection. */
export function isAnswer(error: unknown): boolean {
  return error instanceof RedisReplyError || error instanceof UnknownReplyError;
}
