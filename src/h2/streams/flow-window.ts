import { invariant } from '../../invariant.js';

/** Maximum size of a flow control window in octets (RFC 9113 section 6.9.1). */
export const MAX_WINDOW_BYTES = 0x7fff_ffff;

/**
 * Returns whether `increment` octets would make `window` too large: "A sender MUST NOT allow a flow-control window to
 * exceed 2^31-1 octets" (RFC 9113 section 6.9.1). Windows and increments are below 2^31, so the sum is exact. A window
 * may be negative (section 6.9.2).
 */
export function overflowsWindow(window: number, increment: number): boolean {
  return window + increment > MAX_WINDOW_BYTES;
}

/** Returns the number of octets that two windows allow to send. Either window may be negative. */
export function sendable(streamWindow: number, connectionWindow: number): number {
  return Math.max(0, Math.min(streamWindow, connectionWindow));
}

/**
 * A window for data that the peer sends. {@link available} is what the peer may still send. Received octets are
 * unconsumed until they are consumed, and then part of the pending increment until a WINDOW_UPDATE returns them. The
 * three values add up to the size of the window.
 */
export class ReceiveWindow {
  available: number;
  unconsumed = 0;
  pendingIncrement = 0;

  constructor(size: number) {
    this.available = size;
  }

  /** Counts received octets. Returns false, without counting, if the peer exceeded the window. */
  receive(octets: number): boolean {
    if (octets > this.available) return false;
    this.available -= octets;
    this.unconsumed += octets;
    invariant(this.available >= 0, 'a peer sends no more than its window allows');
    return true;
  }

  /** Marks received octets as consumed. Returns how many were counted, at most the unconsumed ones. */
  consume(octets: number): number {
    const counted = Math.min(octets, this.unconsumed);
    this.unconsumed -= counted;
    this.pendingIncrement += counted;
    return counted;
  }

  /** Returns the increment to send in a WINDOW_UPDATE, at least `batch` octets, or 0. The caller must send it. */
  takeIncrement(batch: number): number {
    const increment = this.pendingIncrement;
    if (increment < batch || increment === 0) return 0;
    this.pendingIncrement = 0;
    this.available += increment;
    invariant(this.available <= MAX_WINDOW_BYTES, 'a window is no larger than 2^31-1');
    return increment;
  }
}
