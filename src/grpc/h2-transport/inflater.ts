import { gunzip, gunzipSync } from 'node:zlib';
import { GrpcError, STATUS } from '../grpc-server.js';

/** Up to here messages are inflated at once: it takes less than the way through the thread pool. Compressed bytes, and inflated ones. */
const SYNC_INPUT_BYTES = 8192;
const SYNC_OUTPUT_BYTES = 65_536;
/** Messages inflated at a time; half of libuv's threads, which files and names need too. */
const MAX_RUNNING = 2;

/** Takes the message, or why there is none. */
export type Inflated = (message: Buffer | GrpcError) => void;

/** Whom a message is inflated for. */
export interface Waiting {
  /** True when it need not be inflated any more: then nobody is told. */
  cancelled(): boolean;
}

interface Job {
  readonly waiting: Waiting;
  readonly compressed: Buffer;
  readonly done: Inflated;
}

/** Inflates gzip messages, and stops as soon as one grows beyond the message limit. */
export class Inflater {
  readonly #maxMessageBytes: number;
  readonly #waiting: Job[] = [];
  #running = 0;

  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** Other encodings than gzip know no compressed messages. `compressed` must not change until `done` is called, which may be at once, and is not when `waiting` was cancelled before. */
  inflate(encoding: string, compressed: Buffer, waiting: Waiting, done: Inflated): void {
    if (encoding !== 'gzip') {
      done(new GrpcError(STATUS.INTERNAL, 'Received a compressed message without grpc-encoding'));
    } else if (compressed.length > SYNC_INPUT_BYTES || !this.#inflateNow(compressed, done)) {
      this.#waiting.push({ compressed, waiting, done });
      this.#next();
    }
  }

  /** False when it is a longer piece of work. */
  #inflateNow(compressed: Buffer, done: Inflated): boolean {
    const maxOutputLength = Math.min(this.#maxMessageBytes, SYNC_OUTPUT_BYTES);
    let message: Buffer;
    try {
      message = gunzipSync(compressed, { maxOutputLength: Math.max(1, maxOutputLength) });
    } catch (error) {
      if (isTooLarge(error) && maxOutputLength < this.#maxMessageBytes) return false;
      done(this.#failure(error));
      return true;
    }
    done(message);
    return true;
  }

  #next(): void {
    if (this.#running === MAX_RUNNING) return;
    let job = this.#waiting.shift();
    while (job?.waiting.cancelled() === true) job = this.#waiting.shift();
    if (job === undefined) return;
    this.#running++;
    const { waiting, done } = job;
    gunzip(job.compressed, { maxOutputLength: this.#maxMessageBytes }, (error, message) => {
      this.#running--;
      if (!waiting.cancelled()) done(error === null ? message : this.#failure(error));
      this.#next();
    });
  }

  #failure(error: unknown): GrpcError {
    return isTooLarge(error)
      ? new GrpcError(
          STATUS.RESOURCE_EXHAUSTED,
          `Received message that decompresses to a size larger than ${this.#maxMessageBytes}`,
        )
      : new GrpcError(STATUS.INTERNAL, 'Failed to decompress message');
  }
}

function isTooLarge(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
}
