import type { RateLimitRequest } from '../codec/messages.js';
import { FairCapacity } from '../runtime/fair-capacity.js';

/** Maximum memory of decoded requests that wait for the store, in bytes. */
export const MAX_STORE_WAITING_BYTES = 16 * 1024 * 1024;
/** Part of this memory that only small requests may use, in bytes. */
export const SMALL_REQUEST_RESERVE_BYTES = 2 * 1024 * 1024;
/** Maximum size of a small request, in bytes. */
export const MAX_SMALL_REQUEST_BYTES = 4096;

/**
 * Bounds the memory of requests that wait for the store. A store that does not answer holds them until its timeout,
 * even after their callers have gone and their connections no longer count them. A reserve for small requests stays
 * free of large ones.
 */
export class WaitingRequests {
  readonly #sharedRoom = new FairCapacity(MAX_STORE_WAITING_BYTES - SMALL_REQUEST_RESERVE_BYTES);
  readonly #smallReserve = new FairCapacity(SMALL_REQUEST_RESERVE_BYTES);

  /** Bytes held now. */
  get bytes(): number {
    return this.#sharedRoom.used + this.#smallReserve.used;
  }

  /**
   * Counts a request of `bytes` until the returned function is called. Returns undefined if there is not enough space.
   */
  begin(bytes: number, connection: unknown): (() => void) | undefined {
    let room = this.#sharedRoom;
    if (!room.canAcquire(bytes, connection)) {
      room = this.#smallReserve;
      if (bytes > MAX_SMALL_REQUEST_BYTES || !room.canAcquire(bytes, connection)) return undefined;
    }
    const isScarce = room.acquire(bytes, connection);
    return () => room.release(bytes, isScarce ? [[connection, bytes]] : undefined);
  }
}

/** Approximate memory of a decoded entry and of a descriptor, without their strings, in bytes. */
const ENTRY_BYTES = 100;
const DESCRIPTOR_BYTES = 200;

/** Returns the approximate memory of a decoded request, in bytes. */
export function bytesOf({ descriptors }: RateLimitRequest): number {
  let bytes = 0;
  for (let i = 0; i < descriptors.length; i++) {
    const entries = descriptors[i]?.entries ?? [];
    bytes += DESCRIPTOR_BYTES + entries.length * ENTRY_BYTES;
    for (let at = 0; at < entries.length; at++) {
      bytes += (entries[at]?.key.length ?? 0) + (entries[at]?.value.length ?? 0);
    }
  }
  return bytes;
}
