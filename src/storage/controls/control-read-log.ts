import type { StorageError } from '../../limiter/bucket-store.js';

/** Refusals in a row after which it is no failover, nor a slot on its way to another node. */
const MIN_REFUSALS = 5;

/** Tells the log, once, that Redis does not let controls be read, and once that it does again. */
export class ControlReadLog {
  readonly #log: (level: 'info' | 'warn', message: string) => void;
  #refused = 0;
  #complained = false;

  constructor(log: (level: 'info' | 'warn', message: string) => void) {
    this.#log = log;
  }

  /** What became of a question. Of a Redis that is away, or late, the log tells already. */
  note(error: StorageError | undefined): void {
    if (error === undefined) {
      if (this.#complained) this.#log('info', 'blocks and exemptions are read from Redis again');
      this.#complained = false;
      this.#refused = 0;
      return;
    }
    if (error.reason !== 'rejected' || ++this.#refused < MIN_REFUSALS || this.#complained) return;
    this.#complained = true;
    this.#log(
      'warn',
      `blocks and exemptions cannot be read from Redis, so that new ones have no effect here (${error.message}); ` +
        'if it is for want of rights, give the user of weir those that docs/operate/redis.md names',
    );
  }
}
