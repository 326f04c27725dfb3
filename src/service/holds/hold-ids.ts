import { randomFillSync } from 'node:crypto';
import { HOLD_ID_DIGITS, type HoldId } from '../../limiter/holds/hold.js';

/** Random bytes that are drawn at once, because a call costs more than its bytes. */
const pool = Buffer.alloc(3072);
let digits = '';
let at = 0;

/** Returns a new id: 96 random bits. */
export function newHoldId(): HoldId {
  if (at === digits.length) {
    digits = randomFillSync(pool).toString('hex');
    at = 0;
  }
  const id = digits.slice(at, at + HOLD_ID_DIGITS);
  at += HOLD_ID_DIGITS;
  return id;
}
