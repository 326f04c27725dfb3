import type { RedisAddress, RedisEndpoint } from './redis-address.js';

/** Where a Redis was found. */
export interface FoundRedis {
  readonly endpoint: RedisEndpoint;
  /** As the log may show it. */
  readonly name: string;
  /** Whether it must say that it is a master; a single Redis shows by a write that it may be used. */
  readonly mustBeMaster: boolean;
}

/** Knows where the Redis is that buckets live in. */
export interface RedisFinder {
  /** Where it is now. Rejects with an Error for the log where nobody knows. */
  find(): Promise<FoundRedis>;
  /** `listener` is called when another Redis was announced. */
  onMoved(listener: (found: FoundRedis) => void): void;
  close(): void;
}

/** Finds the one Redis that an address names. */
export function fixedFinder({ host, port, path, redactedAddress }: RedisAddress): RedisFinder {
  const endpoint = path === undefined ? { host: host as string, port: port as number } : { path };
  const found: FoundRedis = { endpoint, name: redactedAddress, mustBeMaster: false };
  return {
    find: () => Promise.resolve(found),
    onMoved: () => {},
    close: () => {},
  };
}
