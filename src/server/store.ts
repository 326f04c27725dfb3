import { readFileSync } from 'node:fs';
import type { BucketStore } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import { DenyCache, type LocalCacheStats } from '../storage/deny-cache.js';
import { MemoryStore } from '../storage/memory/memory-store.js';
import { parseRedisUrl, type RedisAddress } from '../storage/redis/redis-address.js';
import type { ConnectionCounts, RedisTlsOptions } from '../storage/redis/redis-connection.js';
import { RedisStore } from '../storage/redis/redis-store.js';
import type { RedisStoreOptions } from '../storage/redis/redis-store-options.js';
import type { Logger } from '../telemetry/logger.js';
import type { DenyCacheStats, MemoryStats } from '../telemetry/metrics.js';
import type { Settings } from './settings-table.js';
import { StartError } from './start-error.js';

/** Connections to one Redis; named as in the reference's statistics. */
export interface PoolStats extends ConnectionCounts {
  readonly name: 'redis_pool' | 'redis_per_second_pool';
}

/** Where this process keeps its buckets, and what it knows of that. */
export interface Store {
  /** For people: `memory`, or Redis and its address without credentials. */
  readonly name: string;
  readonly buckets: BucketStore;
  /** In memory, for `on_store_failure: local`; the same as `buckets` when that is in memory. */
  readonly local: BucketStore;
  /** Whether it can decide now. */
  up(): boolean;
  memoryStats(): MemoryStats;
  /** Zeros where there is no deny cache. */
  denyCacheStats(): DenyCacheStats;
  /** Undefined where denials are not kept. */
  localCacheStats(): LocalCacheStats | undefined;
  /** One for each Redis; none in memory. */
  pools(): readonly PoolStats[];
  /** The policy may be another one: forgets what was learnt under the old one. */
  reloaded(): void;
  onChange(listener: (up: boolean) => void): void;
  /** Told of each call to Redis: microseconds until its answer. */
  onAnswer(listener: (micros: number) => void): void;
  close(): Promise<void>;
}

/** Redis decides again for this long: local buckets are forgotten. */
const FORGET_MICROS = 5_000_000;
const NO_DENY_CACHE: DenyCacheStats = { answers: 0, entries: 0 };

function memoryStore(settings: Settings, clock: Clock): MemoryStore {
  return new MemoryStore({
    clock,
    maxBuckets: settings.memoryMaxBuckets,
    maxBytes: settings.memoryMaxBytes,
    countDeniedHits: !settings.stopIncrementWhenOver,
  });
}

/** Opens the store that the settings name. Redis is connected to in the background. Throws {@link StartError}. */
export function openStore(settings: Settings, clock: Clock, log: Logger): Store {
  if (settings.redisUrl === '') {
    const memory = memoryStore(settings, clock);
    return {
      name: 'memory',
      buckets: memory,
      local: memory,
      up: () => true,
      memoryStats: () => memory,
      denyCacheStats: () => NO_DENY_CACHE,
      localCacheStats: () => undefined,
      pools: () => [],
      reloaded: () => {},
      onChange: () => {},
      onAnswer: () => {},
      close: () => memory.close(),
    };
  }
  return redisStore(settings, clock, log);
}

function redisStore(settings: Settings, clock: Clock, log: Logger): Store {
  let memory = memoryStore(settings, clock);
  const address = redisAddress(settings);
  const onAnswer: ((micros: number) => void)[] = [];
  const onChange: ((up: boolean) => void)[] = [];
  const redis = createRedisStore({
    address,
    ...(address.tls ? { tls: tlsOptions(settings) } : {}),
    timeoutMicros: settings.redisTimeout,
    countDeniedHits: !settings.stopIncrementWhenOver,
    maxInFlight: settings.redisMaxInFlight,
    keysPerCall: settings.redisBatchKeys,
    log: (level, message) => log[level](message),
    observeCall: (micros) => {
      for (const listener of onAnswer) listener(micros);
    },
  });
  const denials =
    settings.denyCacheMaxAge === 0
      ? undefined
      : new DenyCache({
          store: redis,
          maxAgeMicros: settings.denyCacheMaxAge,
          maxEntries: settings.denyCacheMaxEntries,
          monotonicMicros: () => clock.monotonicMicros(),
        });
  // Local buckets only stand in for Redis's, so the next outage starts with full ones; but a Redis that comes and goes must not fill them
  // again and again.
  let fallbackUsedAt = Number.NEGATIVE_INFINITY;
  const forgetting = setInterval(() => {
    if (redis.connected && memory.size > 0 && clock.monotonicMicros() - fallbackUsedAt > FORGET_MICROS) {
      memory = memoryStore(settings, clock);
    }
  }, FORGET_MICROS / 1000).unref();
  redis.onUp(() => {
    for (const listener of onChange) listener(true);
  });
  redis.onDown(() => {
    for (const listener of onChange) listener(false);
  });
  return {
    name: `Redis ${address.redactedAddress}`,
    buckets: denials ?? redis,
    local: {
      take: (items) => {
        fallbackUsedAt = clock.monotonicMicros();
        return memory.take(items);
      },
      close: () => memory.close(),
    },
    up: () => redis.connected,
    memoryStats: () => memory,
    denyCacheStats: () => denials ?? NO_DENY_CACHE,
    localCacheStats: () => denials?.stats,
    pools: () => [{ name: 'redis_pool', ...redis.connections }],
    reloaded: () => denials?.clear(),
    onChange: (listener) => onChange.push(listener),
    onAnswer: (listener) => onAnswer.push(listener),
    close: () => {
      clearInterval(forgetting);
      return redis.close();
    },
  };
}

/** A store that cannot be made has TLS files that OpenSSL does not take. */
function createRedisStore(options: RedisStoreOptions): RedisStore {
  try {
    return new RedisStore(options);
  } catch (error) {
    const variables = 'REDIS_TLS_CACERT, REDIS_TLS_CLIENT_CERT, REDIS_TLS_CLIENT_KEY';
    throw new StartError([
      `${variables}: not usable as PEM certificates and key: ${(error as Error).message}`,
    ]);
  }
}

/** REDIS_URL with REDIS_AUTH, which is a password or `user:password`. */
function redisAddress(settings: Settings): RedisAddress {
  const { redisAuth } = settings;
  const colon = redisAuth.indexOf(':');
  const overrides =
    redisAuth === ''
      ? {}
      : colon === -1
        ? { password: redisAuth }
        : { username: redisAuth.slice(0, colon), password: redisAuth.slice(colon + 1) };
  try {
    return parseRedisUrl(settings.redisUrl, overrides);
  } catch (error) {
    throw new StartError([`REDIS_URL: ${(error as Error).message}`]);
  }
}

function tlsOptions(settings: Settings): RedisTlsOptions {
  const read = (variable: string, file: string): string => {
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new StartError([`${variable}: cannot read ${file}: ${(error as Error).message}`]);
    }
  };
  const { redisTlsCaCert, redisTlsClientCert, redisTlsClientKey } = settings;
  return {
    ...(redisTlsCaCert === '' ? {} : { ca: read('REDIS_TLS_CACERT', redisTlsCaCert) }),
    ...(redisTlsClientCert === '' ? {} : { cert: read('REDIS_TLS_CLIENT_CERT', redisTlsClientCert) }),
    ...(redisTlsClientKey === '' ? {} : { key: read('REDIS_TLS_CLIENT_KEY', redisTlsClientKey) }),
    ...(settings.redisTlsSkipHostname ? { checkServerIdentity: () => undefined } : {}),
  };
}
