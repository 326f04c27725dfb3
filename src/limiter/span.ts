import { invariant } from '../invariant.js';

/**
 * A point in time or a duration: whole microseconds and a part in 1/q µs, 0 <= part < q, for the q of a rate
 * (TokenBucketRate). Rounding therefore never adds or loses a fraction of a token.
 */
export interface Span {
  whole: number;
  part: number;
}

const CARRY = 'the fractional part of a span is at least 0 and less than q';

/** Adds `whole` µs and `part` / q µs to `span`. */
export function addTo(span: Span, whole: number, part: number, q: number): void {
  span.whole += whole;
  span.part += part;
  if (span.part >= q) {
    span.part -= q;
    span.whole += 1;
  }
  invariant(span.part >= 0 && span.part < q, CARRY);
}

/** Subtracts `whole` µs and `part` / q µs from `span`. */
export function subtractFrom(span: Span, whole: number, part: number, q: number): void {
  span.whole -= whole;
  span.part -= part;
  if (span.part < 0) {
    span.part += q;
    span.whole -= 1;
  }
  invariant(span.part >= 0 && span.part < q, CARRY);
}

/** Returns whether `span` is at least `whole` µs and `part` / q µs. */
export function reaches(span: Readonly<Span>, whole: number, part: number): boolean {
  return span.whole > whole || (span.whole === whole && span.part >= part);
}

/** Returns whether `span` is greater than `whole` µs and `part` / q µs. */
export function exceeds(span: Readonly<Span>, whole: number, part: number): boolean {
  return span.whole > whole || (span.whole === whole && span.part > part);
}
