import { HOLD_ID_DIGITS, type Settlement } from '../../limiter/holds/hold.js';

/**
 * A hold in a token. The token names the bucket to settle, and repeats the values that the store has, so that the
 * store need not keep the name of the bucket for each hold. No value is trusted: a store settles only a hold with all
 * of these values, whose id has 96 random bits.
 */
export interface TokenHold extends Settlement {
  /** Name and tag of the bucket; see TakeItem. */
  readonly key: string;
  readonly tagLength: number;
  /** Digest of the rule that placed it; see `HeldRules`. */
  readonly rule: number;
  /** Whether the local buckets of a process hold it, because the store was unavailable. */
  readonly isLocal: boolean;
  /** Whether its hits are given back if the use is unknown. A reload does not change this for existing holds. */
  readonly freesUnknown: boolean;
}

const VERSION = 1;
const LOCAL_FLAG = 1;
const FREE_FLAG = 2;
const ALL_FLAGS = LOCAL_FLAG | FREE_FLAG;
const ID_BYTES = HOLD_ID_DIGITS / 2;
/** Bytes of a hold before the name of its bucket: flags, rule, id, hits, lifetime, time, tag length, name length. */
const HEAD_BYTES = 1 + 4 + ID_BYTES + 4 + 4 + 8 + 4 + 4;
/**
 * Maximum length of the tokens of a request that are decoded. The names of a thousand buckets of a usual policy fit.
 */
export const MAX_TOKEN_CHARACTERS = 262_144;

/** Encodes the holds of one request as a text of URL-safe characters (RFC 4648 section 5). */
export function encodeToken(holds: readonly TokenHold[]): string {
  let size = 1;
  for (const { key } of holds) size += HEAD_BYTES + Buffer.byteLength(key);
  const bytes = Buffer.allocUnsafe(size);
  let at = bytes.writeUInt8(VERSION, 0);
  for (const hold of holds) {
    at = bytes.writeUInt8((hold.isLocal ? LOCAL_FLAG : 0) | (hold.freesUnknown ? FREE_FLAG : 0), at);
    at = bytes.writeUInt32BE(hold.rule, at);
    at += bytes.write(hold.id, at, 'hex');
    at = bytes.writeUInt32BE(hold.amount, at);
    at = bytes.writeUInt32BE(hold.lifetimeMillis, at);
    at = bytes.writeDoubleBE(hold.fullMicros, at);
    at = bytes.writeUInt32BE(hold.tagLength, at);
    const nameLength = bytes.write(hold.key, at + 4);
    at = bytes.writeUInt32BE(nameLength, at) + nameLength;
  }
  return bytes.toString('base64url');
}

/**
 * Yields the holds of a token. Yields undefined, and ends, if the text or the rest of it is not a token of weir. Long
 * tokens are decoded in slices.
 */
export function* decodeToken(token: string): Generator<TokenHold | undefined, void> {
  const bytes = token.length > MAX_TOKEN_CHARACTERS ? Buffer.of() : Buffer.from(token, 'base64url');
  if (bytes.length < 2 || bytes[0] !== VERSION || bytes.toString('base64url') !== token) {
    yield undefined;
    return;
  }
  for (let at = 1; at < bytes.length; ) {
    const end = at + HEAD_BYTES > bytes.length ? 0 : endAt(bytes, at);
    const hold = end === 0 || end > bytes.length ? undefined : decodeHold(bytes, at, end);
    yield hold;
    if (hold === undefined) return;
    at = end;
  }
}

/** Returns the end of the hold that begins at `at`. */
function endAt(bytes: Buffer, at: number): number {
  return at + HEAD_BYTES + bytes.readUInt32BE(at + HEAD_BYTES - 4);
}

function decodeHold(bytes: Buffer, at: number, end: number): TokenHold | undefined {
  const flags = bytes.readUInt8(at);
  const fullMicros = bytes.readDoubleBE(at + HEAD_BYTES - 16);
  const tagLength = bytes.readUInt32BE(at + HEAD_BYTES - 8);
  if (flags > ALL_FLAGS || !Number.isSafeInteger(fullMicros)) return undefined;
  const key = bytes.toString('utf8', at + HEAD_BYTES, end);
  if (fullMicros < 0 || tagLength > key.length) return undefined;
  return {
    key,
    tagLength,
    rule: bytes.readUInt32BE(at + 1),
    id: bytes.toString('hex', at + 5, at + 5 + ID_BYTES),
    amount: bytes.readUInt32BE(at + 5 + ID_BYTES),
    lifetimeMillis: bytes.readUInt32BE(at + 9 + ID_BYTES),
    fullMicros,
    isLocal: (flags & LOCAL_FLAG) !== 0,
    freesUnknown: (flags & FREE_FLAG) !== 0,
  };
}
