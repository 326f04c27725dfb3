import type { StorageError } from '../../limiter/bucket-store.js';
import type { AwaitedRead } from '../../limiter/control.js';
import { redisFaultOf } from '../redis/connection/redis-fault.js';

/** Refusals after which it is no failover, nor a slot on its way to another node. */
const MAX_REFUSALS = 5;

/**
 * Whether all controls were read once. Calls wait for that, since a block decides them, for as long as Redis may answer
 * in a moment. They stop waiting where it is away, or refuses: `on_store_failure`, or the buckets, decide then.
 */
export class FirstRead implements AwaitedRead {
  awaited: Promise<void> | undefined;
  readonly #whenTold: (told: () => void) => void;
  #isOver = false;
  #refusals = 0;
  #end: () => void = () => {};

  /** `whenTold` runs what it is given once those who decide were told of all that was read. */
  constructor(whenNotified: (told: () => void) => void) {
    this.#whenTold = whenNotified;
  }

  /** Redis may answer in a moment. */
  begin(): void {
    this.#refusals = 0;
    if (this.#isOver || this.awaited !== undefined) return;
    this.awaited = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** A question was not answered: waits on, unless it is known that the next one would not be answered either. */
  failed({ reason, message }: StorageError): void {
    if (reason === 'timeout' || reason === 'overloaded') return;
    const mayPass = reason === 'rejected' && redisFaultOf(message).reason !== 'noperm';
    if (mayPass && ++this.#refusals < MAX_REFUSALS) return;
    this.end('given up');
  }

  /** All was read, which ends it for good, or nobody is to wait for it now. */
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
    if (this.#isOver) this.#whenTold(end);
    else end();
  }
}
