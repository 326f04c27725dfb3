import type { RedisAddress, RedisEndpoint } from './redis-address.js';

/** A Redis that was found. */
export interface FoundRedis {
  readonly endpoint: RedisEndpoint;
  /** Name for the log. */
  readonly name: string;
  /** Whether the Redis must report that it is a master. For a single Redis, a successful write is enough. */
  readonly mustBeMaster: boolean;
}

/** Finds the Redis that stores the buckets. */
export interface RedisFinder {
  /** Returns the current Redis. Rejects with an Error for the log if none is found. */
  find(): Promise<FoundRedis>;
  /** Adds a listener for the announcement of another Redis. */
  onMoved(listener: (found: FoundRedis) => void): void;
  close(): void;
}

/** Returns a finder of the Redis at a fixed address. */
export function fixedFinder({ host, port, path, redactedAddress }: RedisAddress): RedisFinder {
  const endpoint = path === undefined ? { host: host as string, port: port as number } : { path };
  const found: FoundRedis = { endpoint, name: redactedAddress, mustBeMaster: false };
  return {
    find: () => Promise.resolve(found),
    onMoved: () => {},
    close: () => {},
  };
}
