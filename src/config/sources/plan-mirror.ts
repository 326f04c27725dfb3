import { createHash, randomUUID, webcrypto } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadRegularFile } from '../../regular-file.js';
import { makeDirectory } from '../../written-files.js';
import { fileIdentity } from '../files/fingerprint.js';
import { MAX_PLAN_BYTES } from '../read/plans/plan-rows.js';
import { type PlanSource, type SourceFailure, type SourceRows, storedFileOf } from './plan-source.js';

/** Longest time for one answer of a source, in milliseconds. */
const ANSWER_MS = 60_000;
/** Maximum size of an answer that is compared before it is written, in bytes. */
const SMALL_BYTES = 1024 * 1024;
/** The copies contain the customers, so only the user that runs weir can read them. */
const [DIRECTORY_MODE, FILE_MODE] = [0o700, 0o600];

/** Result of {@link PlanMirror.update}. */
export type MirrorResult = 'changed' | 'unchanged' | SourceFailure;

/** The file with the rows, when its content was last known. */
interface StoredFile {
  /** Identity of the file; '' if it does not exist. */
  readonly identity: string;
  readonly digest: string;
}

const NOTHING_STORED: StoredFile = { identity: '', digest: '' };

/** Stores the rows of one source in a file, which weir then reads like any other table. */
export class PlanMirror {
  readonly #source: PlanSource;
  readonly #directory: string;
  readonly #file: string;
  #stored = NOTHING_STORED;
  readonly #answerMs: number;

  constructor(address: string, source: PlanSource, directory: string, answerMs = ANSWER_MS) {
    this.#source = source;
    this.#directory = directory;
    this.#file = join(directory, storedFileOf(address));
    this.#answerMs = answerMs;
  }

  /** Asks the source once. The file changes only if the source answers with other rows, which are complete. */
  async update(stopping: AbortSignal): Promise<MirrorResult> {
    const late = AbortSignal.timeout(this.#answerMs);
    const ended = new AbortController();
    const signal = AbortSignal.any([late, stopping, ended.signal]);
    const isStored = this.#stored.identity !== '' && fileIdentity(this.#file, true) === this.#stored.identity;
    try {
      const answer = await this.#source.open(isStored, signal);
      if (answer === 'unchanged' || answer.kind === 'failed') return answer;
      return await this.#store(answer, isStored);
    } catch (error) {
      if (!late.aborted) return this.#source.failureOf(error);
      const message = `the answer was not complete after ${this.#answerMs / 1000} s`;
      return { kind: 'failed', reason: 'timeout', message };
    } finally {
      // Closes the connection of an answer that was not read to its end, for example because the disk is full.
      ended.abort();
    }
  }

  async #store(rows: SourceRows, isStored: boolean): Promise<MirrorResult> {
    // Processes in two containers may have the same ID, and the same directory.
    const temporary = `${this.#file}.${randomUUID()}.new`;
    try {
      const before = isStored ? this.#stored : await storedIn(this.#file);
      const received = new Received(rows.chunks);
      // A small answer without an ETag is written only if it is new.
      if (!(await received.isSmall()) || received.digest() !== before.digest) {
        makeDirectory(this.#directory, DIRECTORY_MODE);
        await writeFile(temporary, received, { mode: FILE_MODE, flag: 'wx' });
      }
      const { failure } = received;
      if (failure !== undefined) return failure;
      const digest = received.digest();
      const isNew = digest !== before.digest;
      if (isNew) await rename(temporary, this.#file);
      this.#stored = isNew ? { identity: fileIdentity(this.#file, true), digest } : before;
      rows.stored();
      return isNew ? 'changed' : 'unchanged';
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
      const { code } = error as NodeJS.ErrnoException;
      const message =
        `the rows cannot be written to "${this.#directory}" (${code}); make the directory of PLANS_CACHE_PATH ` +
        'writable, and check its free space';
      return { kind: 'failed', reason: 'disk', message };
    } finally {
      await rm(temporary, { force: true }).catch(() => {});
    }
  }
}

/** Identifies a file that another process stored, or this one before a restart. */
async function storedIn(file: string): Promise<StoredFile> {
  const identity = fileIdentity(file, true);
  if (identity === '') return NOTHING_STORED;
  try {
    const bytes = await loadRegularFile(file, MAX_PLAN_BYTES);
    // In another thread, because it takes a tenth of a second.
    const digest = await webcrypto.subtle.digest('SHA-256', bytes);
    return { identity, digest: Buffer.from(digest).toString('hex') };
  } catch {
    // The new rows replace a file that cannot be read.
    return NOTHING_STORED;
  }
}

/** The bytes of an answer while they are received. */
class Received implements AsyncIterable<Uint8Array> {
  #bytes = 0;
  readonly #hash = createHash('sha256');
  readonly #chunks: AsyncIterator<Uint8Array>;
  /** The first chunks, which are not yielded yet. */
  readonly #first: Uint8Array[] = [];

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Returns whether the answer is complete and small. Call it first, and once. */
  async isSmall(): Promise<boolean> {
    while (this.#bytes <= SMALL_BYTES) {
      const chunk = await this.#next();
      if (chunk === undefined) return true;
      this.#first.push(chunk);
    }
    return false;
  }

  /** Yields the bytes, and ends early if there are too many. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#first.splice(0);
      for (let chunk = await this.#next(); chunk !== undefined; chunk = await this.#next()) yield chunk;
    } finally {
      await this.#chunks.return?.();
    }
  }

  async #next(): Promise<Uint8Array | undefined> {
    if (this.#bytes > MAX_PLAN_BYTES) return undefined;
    const { done, value } = await this.#chunks.next();
    if (done === true) return undefined;
    this.#bytes += value.length;
    if (this.#bytes > MAX_PLAN_BYTES) return undefined;
    this.#hash.update(value);
    return value;
  }

  /** The reason why the answer is not a table; undefined if it may be one. */
  get failure(): SourceFailure | undefined {
    if (this.#bytes === 0) return { kind: 'failed', reason: 'content', message: 'the answer is empty' };
    if (this.#bytes <= MAX_PLAN_BYTES) return undefined;
    const message = `the answer has more than ${MAX_PLAN_BYTES / 1024 / 1024} MiB`;
    return { kind: 'failed', reason: 'too_large', message };
  }

  /** The digest of the bytes so far. */
  digest(): string {
    return this.#hash.copy().digest('hex');
  }
}
