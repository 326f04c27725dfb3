import { hash, randomFillSync } from 'node:crypto';
import { BOUND_ID_START, HOLD_ID_DIGITS, type NewHold } from '../../limiter/holds/hold.js';

/** Random bytes for many nonces, because one call that draws few bytes costs almost as much as one that draws many. */
const pool = Buffer.alloc(3072);
/** Length of a nonce: 96 random bits in base64url. */
export const NONCE_LENGTH = 16;
let nonces = '';
let at = 0;

function newNonce(): string {
  if (at === nonces.length) {
    nonces = randomFillSync(pool).toString('base64url');
    at = 0;
  }
  const nonce = nonces.slice(at, at + NONCE_LENGTH);
  at += NONCE_LENGTH;
  return nonce;
}

/** A hold, and the terms that its id is computed from. */
export interface BoundHold extends NewHold {
  /** A nonce of 96 random bits, the digest of the rule, the effect of an unknown use, the hits and the lifetime. */
  readonly terms: string;
}

/** The effects of an unknown use, as the terms contain them. */
export const KEEPS = 'k';
export const FREES = 'f';

/**
 * Returns a new hold of a rule. If a client changes the terms in a token, the token refers to a hold that does not
 * exist.
 */
export function newHold(
  digest: string,
  hits: number,
  lifetimeMillis: number,
  freesUnknown: boolean,
): BoundHold {
  const terms = `${newNonce()}${digest}${freesUnknown ? FREES : KEEPS}${hits}.${lifetimeMillis}`;
  return { id: idOfTerms(terms), lifetimeMillis, freesUnknown, terms };
}

/**
 * Returns a placeholder for an item that places no hold, but for which the store must first free the expired holds of
 * the bucket.
 */
export function noHold(lifetimeMillis: number, freesUnknown: boolean): BoundHold {
  return { id: NO_HOLD_ID, lifetimeMillis, freesUnknown, terms: '' };
}

const NO_HOLD_ID = '0'.repeat(HOLD_ID_DIGITS);

export function idOfTerms(terms: string): string {
  return BOUND_ID_START + hash('sha256', terms).slice(0, HOLD_ID_DIGITS - BOUND_ID_START.length);
}
