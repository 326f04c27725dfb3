import { FairCapacity } from '../runtime/fair-capacity.js';

/** Most bytes of decoded requests that wait for the store. */
export const MAX_STORE_WAITING_BYTES = 16 * 1024 * 1024;
/** Of these, what small requests find where others have taken the rest. */
export const SMALL_REQUEST_RESERVE_BYTES = 2 * 1024 * 1024;
/** Small: most bytes of a request. */
export const MAX_SMALL_REQUEST_BYTES = 4096;

/**
 * What requests hold while they wait for the store: a store that does not answer keeps them until its timeout, also
 * those whose callers have gone, and whose connections count them no more. Large ones leave room for small ones.
 */
export class WaitingRequests {
  readonly #sharedRoom = new FairCapacity(MAX_STORE_WAITING_BYTES - SMALL_REQUEST_RESERVE_BYTES);
  readonly #smallReserve = new FairCapacity(SMALL_REQUEST_RESERVE_BYTES);

  /** Bytes held now. */
  get bytes(): number {
    return this.#sharedRoom.used + this.#smallReserve.used;
  }

  /** A request of so many bytes waits from now until what is returned is called; undefined: there is no room for it. */
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
