import { HOLD_ID_DIGITS, type HoldValues } from '../../../limiter/holds/hold.js';

const VERSION = 1;
const ID_BYTES = HOLD_ID_DIGITS / 2;
/** Bytes before the times: version, id, hits, lifetime. */
const HEAD_BYTES = 1 + ID_BYTES + 4 + 4;

/**
 * Encodes the values of a hold as the ID that operators see, in URL-safe characters. A store ends only a hold with all
 * of these values, so no hold has to be searched for.
 */
export function encodeHoldId({
  id,
  amount,
  lifetimeMillis,
  fullAtMicros,
  refillMicros = 0,
}: HoldValues): string {
  const times = refillMicros > 0 ? [fullAtMicros, refillMicros] : fullAtMicros > 0 ? [fullAtMicros] : [];
  const bytes = Buffer.alloc(HEAD_BYTES + 8 * times.length);
  bytes.writeUInt8(VERSION, 0);
  bytes.write(id, 1, 'hex');
  bytes.writeUInt32BE(amount, 1 + ID_BYTES);
  bytes.writeUInt32BE(lifetimeMillis, 5 + ID_BYTES);
  for (const [i, time] of times.entries()) bytes.writeDoubleBE(time, HEAD_BYTES + 8 * i);
  return bytes.toString('base64url');
}

/** Decodes an ID of {@link encodeHoldId}. Returns undefined if the text is not such an ID. */
export function decodeHoldId(text: string): HoldValues | undefined {
  const bytes = Buffer.from(text, 'base64url');
  const timeCount = (bytes.length - HEAD_BYTES) / 8;
  if (bytes[0] !== VERSION || ![0, 1, 2].includes(timeCount)) return undefined;
  const fullAtMicros = timeCount > 0 ? bytes.readDoubleBE(HEAD_BYTES) : 0;
  const refillMicros = timeCount > 1 ? bytes.readDoubleBE(HEAD_BYTES + 8) : 0;
  for (const time of [fullAtMicros, refillMicros])
    if (!Number.isSafeInteger(time) || time < 0) return undefined;
  return {
    id: bytes.toString('hex', 1, 1 + ID_BYTES),
    amount: bytes.readUInt32BE(1 + ID_BYTES),
    lifetimeMillis: bytes.readUInt32BE(5 + ID_BYTES),
    fullAtMicros,
    ...(refillMicros > 0 && { refillMicros }),
  };
}
