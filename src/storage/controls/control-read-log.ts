import type { StorageError } from '../../limiter/bucket-store.js';

/** Minimum number of consecutive refusals that rule out a failover or a slot migration as the cause. */
const MIN_REFUSALS = 5;

/** Logs once that Redis refuses to return controls, and once that it returns them again. */
export class ControlReadLog {
  readonly #log: (level: 'info' | 'warn', message: string) => void;
  #refused = 0;
  #hasLoggedRefusal = false;

  constructor(log: (level: 'info' | 'warn', message: string) => void) {
    this.#log = log;
  }

  /** Records the result of a poll. Timeouts and lost connections are logged elsewhere. */
  note(error: StorageError | undefined): void {
    if (error === undefined) {
      if (this.#hasLoggedRefusal) this.#log('info', 'weir can read blocks and exemptions from Redis again');
      this.#hasLoggedRefusal = false;
      this.#refused = 0;
      return;
    }
    if (error.reason !== 'rejected' || ++this.#refused < MIN_REFUSALS || this.#hasLoggedRefusal) return;
    this.#hasLoggedRefusal = true;
    this.#log(
      'warn',
      'weir cannot read blocks and exemptions from Redis, so new ones have no effect on this server ' +
        `(${error.message}); if the Redis user lacks permissions, see docs/operate/redis.md`,
    );
  }
}
