import type { StorageError } from '../../limiter/bucket-store.js';
import type { AwaitedRead } from '../../limiter/control.js';
import { redisFaultOf } from '../redis/connection/redis-fault.js';

/** Minimum number of refusals that rule out a failover or a slot migration as the cause. */
const MAX_REFUSALS = 5;

/**
 * Tracks whether all controls have been read once. Calls wait for the first read while Redis may answer soon, because a
 * block could deny them. They stop waiting if Redis is unavailable or refuses; then `on_store_failure` or the buckets
 * decide.
 */
export class FirstRead implements AwaitedRead {
  awaited: Promise<void> | undefined;
  readonly #whenNotified: (notified: () => void) => void;
  #isOver = false;
  #refusals = 0;
  #end: () => void = () => {};

  /** `whenNotified` runs its argument after all listeners have received the controls that were read. */
  constructor(whenNotified: (notified: () => void) => void) {
    this.#whenNotified = whenNotified;
  }

  /** Starts the wait, because Redis may reply soon. */
  begin(): void {
    this.#refusals = 0;
    if (this.#isOver || this.awaited !== undefined) return;
    this.awaited = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** Records a failed poll. The wait continues, unless the next poll is certain to fail as well. */
  failed({ reason, message }: StorageError): void {
    if (reason === 'timeout' || reason === 'overloaded') return;
    const mayPass = reason === 'rejected' && redisFaultOf(message).reason !== 'noperm';
    if (mayPass && ++this.#refusals < MAX_REFUSALS) return;
    this.end('given up');
  }

  /** Ends the wait: permanently after all controls were read, or until the next {@link begin} if Redis refuses. */
  end(why: 'read' | 'given up'): void {
    if (this.#isOver || this.awaited === undefined) {
      this.#isOver ||= why === 'read';
      return;
    }
    const end = (): void => {
      this.awaited = undefined;
      this.#end();
    };
    this.#isOver = why === 'read';
    if (this.#isOver) this.#whenNotified(end);
    else end();
  }
}
