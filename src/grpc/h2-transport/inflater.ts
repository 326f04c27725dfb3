import { gunzip, gunzipSync } from 'node:zlib';
import { GrpcError, type InflationOptions, inflationLimit, STATUS } from '../grpc-server.js';

/**
 * Up to here messages are inflated at once: it takes less than the way through the thread pool. Compressed bytes, and
 * inflated ones.
 */
const SYNC_INPUT_BYTES = 8192;
const SYNC_OUTPUT_BYTES = 65_536;
/** Messages inflated at a time; half of libuv's threads, which files and names need too. */
const MAX_RUNNING = 2;
/** The end of a gzip stream tells how long it becomes, modulo 2^32 (RFC 1952 section 2.3.1, ISIZE). */
const ISIZE_BYTES = 4;

/** Takes the message, or why there is none. */
export type OnInflated = (message: Buffer | GrpcError) => void;

/** Whom a message is inflated for. */
export interface InflationOwner {
  /** Connections take turns: none gets more for asking more. */
  readonly connection: object;
  /** True when it need not be inflated any more: then nobody is told. */
  cancelled(): boolean;
}

/** Where a compressed message stands, so that what waits to be inflated is gone as soon as its owner drops it. */
export interface CompressedMessage {
  readonly message: Buffer;
  /** The message, whose memory must not be freed any more: it is read beside the event loop, however the call ends. */
  lend(): Buffer;
}

interface Job {
  readonly waiting: InflationOwner;
  readonly compressed: CompressedMessage;
  readonly done: OnInflated;
}

/**
 * Inflates gzip messages, and stops as soon as one grows beyond its limit. What is done at once takes a tenth of a
 * millisecond at most, and ends with the unit of work of the connection that it came by; the rest is done beside the
 * event loop.
 */
export class Inflater {
  readonly #options: InflationOptions;
  /** By connection, in the order of their turns: a Map keeps it. */
  readonly #waiting = new Map<object, Job[]>();
  #running = 0;

  constructor(options: InflationOptions) {
    this.#options = options;
  }

  /** Messages that are being inflated beside the event loop, or wait for it. */
  get size(): number {
    let size = this.#running;
    for (const jobs of this.#waiting.values()) size += jobs.length;
    return size;
  }

  /**
   * Other encodings than gzip know no compressed messages. `compressed` must not change until `done` is called, which
   * may be at once, or `waiting` is cancelled: then it is not called, and the message not looked at.
   */
  inflate(encoding: string, compressed: CompressedMessage, waiting: InflationOwner, done: OnInflated): void {
    if (encoding !== 'gzip') {
      done(new GrpcError(STATUS.INTERNAL, 'Received a compressed message without grpc-encoding'));
      return;
    }
    const { message } = compressed;
    if (!isShort(message) || !this.#inflateNow(message, done)) {
      this.#wait({ compressed, waiting, done });
      this.#next();
    }
  }

  /** False when it is a longer piece of work. */
  #inflateNow(compressed: Buffer, done: OnInflated): boolean {
    const limit = inflationLimit(this.#options, compressed.length);
    const maxOutputLength = Math.min(limit, SYNC_OUTPUT_BYTES);
    let message: Buffer;
    try {
      message = gunzipSync(compressed, { maxOutputLength: Math.max(1, maxOutputLength) });
    } catch (error) {
      if (isTooLarge(error) && maxOutputLength < limit) return false;
      done(failure(error, limit));
      return true;
    }
    done(message);
    return true;
  }

  #wait(job: Job): void {
    const { connection } = job.waiting;
    const others = this.#waiting.get(connection);
    if (others === undefined) this.#waiting.set(connection, [job]);
    else others.push(job);
  }

  #next(): void {
    if (this.#running === MAX_RUNNING) return;
    for (const [connection, jobs] of this.#waiting) {
      this.#waiting.delete(connection);
      const job = jobs.find(({ waiting }) => !waiting.cancelled());
      if (job === undefined) continue;
      jobs.splice(0, jobs.indexOf(job) + 1);
      // Behind the others.
      if (jobs.length > 0) this.#waiting.set(connection, jobs);
      this.#run(job);
      return;
    }
  }

  #run({ compressed, waiting, done }: Job): void {
    this.#running++;
    const bytes = compressed.lend();
    const limit = inflationLimit(this.#options, bytes.length);
    gunzip(bytes, { maxOutputLength: Math.max(1, limit) }, (error, message) => {
      this.#running--;
      if (!waiting.cancelled()) done(error === null ? message : failure(error, limit));
      this.#next();
    });
  }
}

/** Whether the message is probably inflated in no time. Its end may lie: then it is damaged, too. */
function isShort(compressed: Buffer): boolean {
  const { length } = compressed;
  if (length < ISIZE_BYTES || length > SYNC_INPUT_BYTES) return length < ISIZE_BYTES;
  return compressed.readUInt32LE(length - ISIZE_BYTES) <= SYNC_OUTPUT_BYTES;
}

function failure(error: unknown, limit: number): GrpcError {
  return isTooLarge(error)
    ? new GrpcError(
        STATUS.RESOURCE_EXHAUSTED,
        `Received message that decompresses to a size larger than ${limit}`,
      )
    : new GrpcError(STATUS.INTERNAL, 'Failed to decompress message');
}

function isTooLarge(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
}
