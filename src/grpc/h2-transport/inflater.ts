import { createGunzip, gunzipSync } from 'node:zlib';
import { GrpcError, STATUS } from '../grpc-server.js';

/**
 * Shorter messages are inflated synchronously, which takes less time than using the thread pool. Compressed bytes, and
 * inflated bytes.
 */
const SYNC_INPUT_BYTES = 8192;
const SYNC_OUTPUT_BYTES = 65_536;
/**
 * Maximum number of messages that are inflated concurrently: half of libuv's threads, which file access and name
 * resolution also use.
 */
const MAX_RUNNING = 2;
/** The end of a gzip stream contains its inflated length modulo 2^32 (RFC 1952 section 2.3.1, ISIZE). */
const ISIZE_BYTES = 4;

const NOT_INFLATED = new GrpcError(STATUS.INTERNAL, 'Failed to decompress message');

/** Receives the message, as far as it is kept, or the error why it could not be inflated. */
export type OnInflated = (message: Buffer | GrpcError) => void;

/** The call that a message is inflated for. */
export interface InflationOwner {
  /** Connections take turns, so a connection gains nothing from sending more messages. */
  readonly connection: object;
  /** Returns whether the call has ended. The message is then not inflated, and the callback is not called. */
  cancelled(): boolean;
}

/** A compressed message. It is freed as soon as its owner drops it, even while it waits to be inflated. */
export interface CompressedMessage {
  readonly message: Buffer;
  /** Returns the message. Its memory must not be freed any more, because a thread reads it, even if the call ends. */
  lend(): Buffer;
}

interface Job {
  readonly waiting: InflationOwner;
  readonly compressed: CompressedMessage;
  readonly done: OnInflated;
}

/**
 * Inflates gzip messages and stops as soon as a message is longer than what is kept of it. Synchronous work takes at
 * most a tenth of a millisecond and counts in the read quantum of the connection. Longer work runs in the thread pool.
 */
export class Inflater {
  readonly #keptBytes: number;
  /** Waiting jobs by connection, in the order of their turns, which a Map preserves. */
  readonly #waiting = new Map<object, Job[]>();
  #running = 0;

  /** @param keptBytes maximum length of a result; the rest of a longer message is not inflated */
  constructor(keptBytes: number) {
    this.#keptBytes = keptBytes;
  }

  /** Number of messages that are being inflated in the thread pool, or wait for it. */
  get size(): number {
    let size = this.#running;
    for (const jobs of this.#waiting.values()) size += jobs.length;
    return size;
  }

  /**
   * Inflates a message. Encodings other than gzip do not support compressed messages. `compressed` must not change
   * until `done` is called, possibly synchronously, or `waiting` is canceled, in which case `done` is not called.
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

  /** Inflates a short message synchronously. Returns false if the message takes longer. */
  #inflateNow(compressed: Buffer, done: OnInflated): boolean {
    const maxOutputLength = Math.min(this.#keptBytes, SYNC_OUTPUT_BYTES);
    let message: Buffer;
    try {
      message = gunzipSync(compressed, { maxOutputLength });
    } catch (error) {
      if (isTooLarge(error)) return false;
      done(NOT_INFLATED);
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
      // The connection is queued again, behind the others.
      if (jobs.length > 0) this.#waiting.set(connection, jobs);
      this.#run(job);
      return;
    }
  }

  #run({ compressed, waiting, done }: Job): void {
    this.#running++;
    const pieces: Buffer[] = [];
    let missingBytes = this.#keptBytes;
    const gunzip = createGunzip();
    const end = (failure?: GrpcError): void => {
      gunzip.removeAllListeners('end').destroy();
      this.#running--;
      if (!waiting.cancelled()) done(failure ?? Buffer.concat(pieces).subarray(0, this.#keptBytes));
      this.#next();
    };
    gunzip.on('data', (piece: Buffer) => {
      pieces.push(piece);
      missingBytes -= piece.length;
      if (missingBytes <= 0) end();
    });
    gunzip.once('end', () => end());
    gunzip.once('error', () => end(NOT_INFLATED));
    gunzip.end(compressed.lend());
  }
}

/** Returns whether inflating the message probably takes little time. If ISIZE is wrong, the message is corrupt. */
function isShort(compressed: Buffer): boolean {
  const { length } = compressed;
  if (length < ISIZE_BYTES || length > SYNC_INPUT_BYTES) return length < ISIZE_BYTES;
  return compressed.readUInt32LE(length - ISIZE_BYTES) <= SYNC_OUTPUT_BYTES;
}

function isTooLarge(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
}
