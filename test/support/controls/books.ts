import type { Clock } from '../../../src/limiter/clock.js';
import {
  RedisControlBook,
  type RedisControlBookOptions,
} from '../../../src/storage/controls/redis-control-book.js';
import type { RedisBuckets } from '../../../src/storage/redis/redis-buckets.js';
import { RecordedControls } from './controls.js';

/** A ControlBook of one process that keeps its controls in Redis, with the events that it reported. */
export class ProcessBook {
  readonly heard = new RecordedControls();
  readonly logged: string[] = [];
  /** Number of notices that any bucket may have been refilled. */
  touchedUnknown = 0;
  /** Reported losses of Redis: numbers of blocks and exemptions. */
  readonly lost: (readonly [number, number])[] = [];
  /** Whether Redis is available. */
  isUp = true;
  readonly book: RedisControlBook;
  readonly #onUp: (() => void)[] = [];

  constructor(
    redis: Pick<RedisBuckets, 'runScript' | 'connected'>,
    clock: Pick<Clock, 'monotonicMicros'>,
    options: Partial<RedisControlBookOptions> = {},
  ) {
    const isUp = (): boolean => this.isUp && redis.connected;
    this.book = new RedisControlBook({
      redis: {
        get connected() {
          return isUp();
        },
        runScript: (question) => redis.runScript(question),
        onUp: (listener) => this.#onUp.push(listener),
      },
      monotonicMicros: () => clock.monotonicMicros(),
      log: (level, message) => this.logged.push(`${level} ${message}`),
      onTouchedUnknown: () => this.touchedUnknown++,
      pollMs: 10,
      ...options,
    });
    this.book.onChange(this.heard.listener);
    this.book.onLost(({ block, allow }) => this.lost.push([block, allow]));
  }

  /** Makes Redis available again. */
  comeUp(): void {
    this.isUp = true;
    for (const listener of this.#onUp) listener();
  }
}
