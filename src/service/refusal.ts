import { DecodeError } from '../codec/messages.js';

/**
 * The reason why a request has no decision. Messages are safe for the caller. If the reference has a message for the
 * same reason, the text is equal.
 */
export class Refusal {
  readonly kind: 'bad_request' | 'unavailable';
  readonly message: string;

  constructor(kind: Refusal['kind'], message: string) {
    this.kind = kind;
    this.message = message;
  }
}

/** Messages of the reference, which people search for in their logs. */
export const NO_DOMAIN = new Refusal('bad_request', 'rate limit domain must not be empty');
export const NO_DESCRIPTORS = new Refusal('bad_request', 'rate limit descriptor list must not be empty');
export const NO_CONFIGURATION = new Refusal('unavailable', 'no rate limit configuration loaded');
/** No caller is left to read this message. */
export const CALLER_CANCELLED = new Refusal('unavailable', 'the caller canceled the request');
export const STORE_UNAVAILABLE = new Refusal('unavailable', 'rate limit store unavailable');

/** Returns the refusal of a message that cannot be decoded. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof DecodeError) return new Refusal('bad_request', error.message);
  throw error;
}
