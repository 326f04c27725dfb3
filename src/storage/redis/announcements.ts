import { randomBytes } from 'node:crypto';
import { StorageError } from '../../limiter/bucket-store.js';
import type { RedisBuckets } from './redis-buckets.js';
import { DEFAULT_KEY_PREFIX } from './redis-key.js';
import { scriptText } from './script-requests.js';

/** Time between two polls, in milliseconds. */
const POLL_MS = 500;
/** How long Redis keeps the announcements after the latest one, in milliseconds. */
const KEPT_MS = 30_000;
/** Maximum bytes of all announcements, because each poll reads all of them. */
export const MAX_BYTES = 16_384;
/** Maximum bytes of the keys in one announcement. A longer list of keys stands for all buckets. */
export const MAX_KEYS_BYTES = 4096;
/** Bytes of an identifier. */
const ID_BYTES = 12;
/** Maximum bytes of an announcement: the identifier in base64, a space, the keys and a line end. */
const MAX_LINE_BYTES = (ID_BYTES * 4) / 3 + 1 + MAX_KEYS_BYTES + 1;
const ALL_BUCKETS = 'null';
const NOTHING_TO_ADD = '';

/** Denials that this process caches. */
export interface CachedDenials {
  /** Removes the denials of these buckets. */
  forget(keys: readonly string[]): void;
  /** Removes all denials. */
  clear(): void;
}

/** Settings of {@link Announcements}. */
export interface AnnouncementsOptions {
  /** The Redis that carries the announcements. */
  readonly redis: Pick<RedisBuckets, 'runScript' | 'connected'>;
  /** Prefix of the key; default `weir:1:`. */
  readonly keyPrefix?: string | undefined;
  /** What announcements empty; undefined if this process caches no denials. */
  readonly denials: CachedDenials | undefined;
  /** For tests: time between two polls, in milliseconds. */
  readonly pollMs?: number;
  /** For tests: a monotonic clock in milliseconds. */
  readonly nowMs?: () => number;
}

/**
 * Tells all processes that share a Redis which buckets an operator filled, so that they drop cached denials of these
 * buckets. One key in Redis contains the latest announcements, and each process that caches denials polls it. A process
 * that may have missed an announcement, for example because it did not reach Redis for longer than Redis keeps the key,
 * removes all cached denials.
 */
export class Announcements {
  readonly #options: AnnouncementsOptions;
  readonly #key: string;
  readonly #script = scriptText(['src/storage/redis/script/announcements.lua']);
  /** Random identifier of the last announcement that this process has read; '' if Redis had none. */
  #lastRead = '';
  /** Start of the last poll with a reply, in milliseconds. */
  #lastPollMs = Infinity;
  /** Keys that the next call announces, and the result of that call. */
  #waiting: string[] = [];
  #next: Promise<StorageError | undefined> | undefined;
  #sending: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AnnouncementsOptions) {
    this.#options = options;
    this.#key = `${options.keyPrefix ?? DEFAULT_KEY_PREFIX}{announcements}`;
    if (options.denials !== undefined) this.#pollLater(options.denials);
  }

  /**
   * Announces filled buckets. Resolves with the error if other processes could not be told. Keys that arrive during a
   * call share the next call. Never rejects.
   */
  announce(keys: readonly string[]): Promise<StorageError | undefined> {
    this.#options.denials?.forget(keys);
    for (const key of keys) this.#waiting.push(key);
    this.#next ??= this.#sending.then(() => this.#send());
    return this.#next;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #send(): Promise<StorageError | undefined> {
    const text = JSON.stringify(this.#waiting);
    this.#waiting = [];
    this.#next = undefined;
    const keys = Buffer.byteLength(text) > MAX_KEYS_BYTES ? ALL_BUCKETS : text;
    const sent = this.#run(`${randomBytes(ID_BYTES).toString('base64url')} ${keys}`).then((reply) =>
      reply instanceof StorageError ? reply : undefined,
    );
    this.#sending = sent;
    return sent;
  }

  #run(announcement: string): Promise<string | StorageError> {
    return this.#options.redis.runScript({
      script: this.#script,
      key: this.#key,
      args: [announcement, String(MAX_BYTES), String(KEPT_MS)],
    });
  }

  #pollLater(denials: CachedDenials): void {
    const timer = setTimeout(async () => {
      if (this.#options.redis.connected) {
        const { nowMs = () => performance.now() } = this.#options;
        const startMs = nowMs();
        const reply = await this.#run(NOTHING_TO_ADD);
        if (typeof reply === 'string') {
          const wasAway = nowMs() - this.#lastPollMs >= KEPT_MS;
          this.#lastPollMs = startMs;
          this.#apply(reply, wasAway, denials);
        }
      }
      // close() may have been called in the meantime.
      if (this.#timer === timer) this.#pollLater(denials);
    }, this.#options.pollMs ?? POLL_MS).unref();
    this.#timer = timer;
  }

  /** `wasAway`: whether announcements may have expired since the last poll. */
  #apply(text: string, wasAway: boolean, denials: CachedDenials): void {
    const lines = text.split('\n').slice(0, -1);
    const lastRead = lines.findIndex((line) => line.startsWith(`${this.#lastRead} `));
    // Older announcements may have been dropped, because another one would exceed the maximum.
    const mayBeDropped = this.#lastRead !== '' || Buffer.byteLength(text) > MAX_BYTES - MAX_LINE_BYTES;
    const hasMissed = wasAway || (lastRead === -1 && lines.length > 0 && mayBeDropped);
    const unread = lines.slice(lastRead + 1).map(keysOf);
    if (hasMissed || unread.includes(undefined)) denials.clear();
    else denials.forget(unread.flatMap((keys) => keys ?? []));
    this.#lastRead = /^\S*/.exec(lines.at(-1) ?? '')?.[0] ?? '';
  }
}

/** Returns the keys of an announcement. Undefined stands for all buckets, as does a line of another program. */
function keysOf(line: string): readonly string[] | undefined {
  try {
    const keys: unknown = JSON.parse(line.slice(line.indexOf(' ') + 1));
    return Array.isArray(keys) ? keys : undefined;
  } catch {
    return undefined;
  }
}
