import { withoutArguments } from '../../../runtime/redis-auth.js';

/** Start of messages about a sharding proxy; see probe.ts. */
export const IS_PROXY = 'this address belongs to a proxy:';

/** An error reply of Redis (RESP2, "Simple errors"). */
export class RedisReplyError extends Error {
  override readonly name = 'RedisReplyError';
  /** The first word of the error, in capitals, such as `NOSCRIPT`, `READONLY`, `ERR`. */
  readonly code: string;

  /** `text` is the line from Redis; the message is {@link withoutArguments} of it. */
  constructor(text: string) {
    super(withoutArguments(text));
    this.code = /^[A-Z]+/.exec(text)?.[0] ?? '';
  }
}

/** A reply that the script cannot have returned for the call. The next replies may belong to other calls, too. */
export class UnknownReplyError extends Error {
  override readonly name = 'UnknownReplyError';

  constructor() {
    super('the script returned a reply in an unknown format');
  }
}
