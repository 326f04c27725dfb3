import { invariant } from '../invariant.js';

/**
 * A point or span of time in whole microseconds and a part of 1/q µs, 0 <= part < q, for the q of a rate
 * (TokenBucketRate): so no rounding ever adds or loses a part of a token.
 */
export interface Span {
  whole: number;
  part: number;
}

const CARRY = 'a carry lies between 0 and q';

/** Makes `span` longer, or later, by `whole` µs and `part` / q µs. */
export function addTo(span: Span, whole: number, part: number, q: number): void {
  span.whole += whole;
  span.part += part;
  if (span.part >= q) {
    span.part -= q;
    span.whole += 1;
  }
  invariant(span.part >= 0 && span.part < q, CARRY);
}

/** Makes `span` shorter, or earlier. */
export function subtractFrom(span: Span, whole: number, part: number, q: number): void {
  span.whole -= whole;
  span.part -= part;
  if (span.part < 0) {
    span.part += q;
    span.whole -= 1;
  }
  invariant(span.part >= 0 && span.part < q, CARRY);
}

/** Whether `span` is as long, or as late, as `whole` µs and `part` / q µs, or more. */
export function reaches(span: Readonly<Span>, whole: number, part: number): boolean {
  return span.whole > whole || (span.whole === whole && span.part >= part);
}

/** Whether `span` is longer, or later, than `whole` µs and `part` / q µs. */
export function exceeds(span: Readonly<Span>, whole: number, part: number): boolean {
  return span.whole > whole || (span.whole === whole && span.part > part);
}
