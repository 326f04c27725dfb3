import type { RateLimitRequest } from '../codec/messages.js';
import { StorageError } from '../limiter/bucket-store.js';
import { ScarceRoom } from '../limiter/scarce-room.js';
import { bytesOf } from './costly-requests.js';

/** Most bytes of decoded requests that wait for the store. */
export const MAX_STORE_WAITING_BYTES = 16 * 1024 * 1024;
/** What a request gets for which there is no room. */
export const NO_ROOM_TO_WAIT = new StorageError('full', 'requests that wait for the store hold too much');

/** Ends the wait of a request that is answered at once. */
export const notHeld = (): void => {};

/**
 * What requests hold while they wait for the store: a store that does not answer keeps them until its timeout, also
 * those whose callers have gone, and whose connections count them no more.
 */
export class WaitingRequests {
  readonly #room = new ScarceRoom(MAX_STORE_WAITING_BYTES);

  /** Bytes held now. */
  get bytes(): number {
    return this.#room.taken;
  }

  /** A request waits from now until what is returned is called; undefined: there is no room for it. */
  begin(request: RateLimitRequest, connection: unknown): (() => void) | undefined {
    const bytes = bytesOf(request);
    if (!this.#room.has(bytes, connection)) return undefined;
    const isScarce = this.#room.take(bytes, connection);
    return () => this.#room.giveBack(bytes, isScarce ? [[connection, bytes]] : []);
  }
}
