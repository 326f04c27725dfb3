import { invariant } from '../../invariant.js';

/** Largest flow control window (RFC 9113 section 6.9.1). */
export const MAX_WINDOW_BYTES = 0x7fff_ffff;

/**
 * Whether `window` cannot grow by `increment` octets: "A sender MUST NOT allow a flow-control window to exceed 2^31-1
 * octets" (RFC 9113 section 6.9.1). Windows are below 2^31 and increments too, so the sum is exact; a window may be
 * negative (6.9.2).
 */
export function overflowsWindow(window: number, increment: number): boolean {
  return window + increment > MAX_WINDOW_BYTES;
}

/** Octets that may be sent under two windows, one of which may be negative. */
export function sendable(streamWindow: number, connectionWindow: number): number {
  return Math.max(0, Math.min(streamWindow, connectionWindow));
}

/**
 * One window for what the peer sends: {@link available} is what it may still send, what has come is unconsumed until
 * somebody consumed it, then owed until a WINDOW_UPDATE gives it back. The three add up to the window's size.
 */
export class ReceiveWindow {
  available: number;
  unconsumed = 0;
  pendingIncrement = 0;

  constructor(size: number) {
    this.available = size;
  }

  /** Counts octets that came; false when the peer was not allowed to send them (then nothing is counted). */
  receive(octets: number): boolean {
    if (octets > this.available) return false;
    this.available -= octets;
    this.unconsumed += octets;
    invariant(this.available >= 0, 'a peer sends no more than its window');
    return true;
  }

  /** Octets that were received are consumed; more than came do not count. Returns how many did. */
  consume(octets: number): number {
    const counted = Math.min(octets, this.unconsumed);
    this.unconsumed -= counted;
    this.pendingIncrement += counted;
    return counted;
  }

  /** The increment to send now, at least `batch` octets, or 0. The caller sends it in a WINDOW_UPDATE. */
  takeIncrement(batch: number): number {
    const increment = this.pendingIncrement;
    if (increment < batch || increment === 0) return 0;
    this.pendingIncrement = 0;
    this.available += increment;
    invariant(this.available <= MAX_WINDOW_BYTES, 'a window is no larger than 2^31-1');
    return increment;
  }
}
