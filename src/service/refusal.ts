import { DecodeError, NO_REQUEST } from '../codec/messages.js';

/** Why a request got no decision. Texts are safe for the caller; where the reference has one, it is that one. */
export class Refusal {
  readonly kind: 'bad_request' | 'unavailable';
  readonly message: string;

  constructor(kind: Refusal['kind'], message: string) {
    this.kind = kind;
    this.message = message;
  }
}

/** The reference's texts: people search their logs for them. */
export const NO_DOMAIN = new Refusal('bad_request', 'rate limit domain must not be empty');
export const NO_DESCRIPTORS = new Refusal('bad_request', 'rate limit descriptor list must not be empty');
export const NO_CONFIGURATION = new Refusal('unavailable', 'no rate limit configuration loaded');
/** Nobody reads it. */
export const CALLER_CANCELLED = new Refusal('unavailable', 'the caller has gone');
export const UNDECODABLE = new Refusal('bad_request', NO_REQUEST);
export const STORE_UNAVAILABLE = new Refusal('unavailable', 'rate limit store unavailable');

/** What a caller is told of a message that does not decode. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof DecodeError) return new Refusal('bad_request', error.message);
  throw error;
}
