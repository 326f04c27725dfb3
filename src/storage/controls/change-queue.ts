import { StorageError } from '../../limiter/bucket-store.js';
import { type LogChange, MAX_CHANGES } from './control-log.js';

/** Maximum number of waiting changes. */
export const MAX_CHANGES_WAITING = 1000;

/** A change that was applied or refused. */
export interface LogChanged {
  /** Version of the change; 0 if it was refused. */
  readonly version: number;
  /** Time just before it was sent, on the monotonic clock of this process. */
  readonly askedMicros: number;
}

type Make = (changes: readonly LogChange[]) => Promise<readonly number[] | StorageError>;

interface WaitingChange {
  readonly change: LogChange;
  resolve(made: LogChanged | StorageError): void;
}

/**
 * Applies the changes of this process in order, one call at a time. Each call contains all waiting changes. No change
 * is applied twice.
 */
export class ChangeQueue {
  readonly #make: Make;
  readonly #monotonicMicros: () => number;
  readonly #waiting: WaitingChange[] = [];
  #making = false;
  #closed = false;

  /** `make` is {@link ControlLog.change}. */
  constructor(make: Make, monotonicMicros: () => number) {
    this.#make = make;
    this.#monotonicMicros = monotonicMicros;
  }

  /** Adds a change. Never rejects. */
  async add(change: LogChange): Promise<LogChanged | StorageError> {
    if (this.#closed) return new StorageError('disconnected', 'the store is closed');
    if (this.#waiting.length >= MAX_CHANGES_WAITING)
      return new StorageError('overloaded', 'too many changes are waiting for Redis');
    return await new Promise((resolve) => {
      this.#waiting.push({ change, resolve });
      if (!this.#making) void this.#makeAll();
    });
  }

  /** Drops all changes that were not sent. */
  close(): void {
    this.#closed = true;
    for (const { resolve } of this.#waiting.splice(0))
      resolve(new StorageError('disconnected', 'the store is closed'));
  }

  async #makeAll(): Promise<void> {
    this.#making = true;
    while (this.#waiting.length > 0) {
      const now = this.#waiting.splice(0, MAX_CHANGES);
      const askedMicros = this.#monotonicMicros();
      const made = await this.#make(now.map(({ change }) => change));
      for (const [i, { resolve }] of now.entries()) {
        resolve(made instanceof StorageError ? made : { version: made[i] as number, askedMicros });
      }
    }
    this.#making = false;
  }
}
