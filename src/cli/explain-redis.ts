import type { BucketPlace, ExplainedRule } from '../config/show/explain.js';
import { readSettings } from '../server/settings/read-settings.js';
import type { Settings } from '../server/settings/settings-table.js';
import { StartError } from '../server/start-error.js';
import { mainRedis, perSecondRedis } from '../server/store/redis-options.js';
import { DEFAULT_KEY_PREFIX, redisKey, slotOfKey } from '../storage/redis/redis-key.js';
import { RedisLookup } from '../storage/redis/redis-lookup.js';
import { isPerSecond } from '../storage/sharded/sharded-store.js';
import { CommandError, EXIT, type Io, PROGRESS_MS } from './io.js';

/** Locations of buckets in Redis, and a message for each lookup that failed. */
export interface FoundPlaces {
  readonly places: ReadonlyMap<ExplainedRule, BucketPlace>;
  readonly sentences: readonly string[];
}

/** Reads the settings of a server with this environment, which must keep its buckets in Redis. */
export function redisSettings(environment: Io['environment']): Settings {
  const read = readSettings(environment);
  if (!read.ok) throw new CommandError(EXIT.FAILED, ...read.errors);
  if (read.settings.redisUrl !== '') return read.settings;
  throw new CommandError(
    EXIT.FAILED,
    'REDIS_URL is not set, so a server with these variables keeps its buckets in memory; set REDIS_URL to the same ' +
      'value as on the server, or remove --redis',
  );
}

/**
 * Looks up which Redis servers hold the buckets of `rules`, in the main Redis and, if configured, in the Redis for
 * limits per second. Prints progress to standard error and does not reject if Redis is unavailable.
 */
export async function findPlaces(
  rules: readonly ExplainedRule[],
  settings: Settings,
  io: Io,
): Promise<FoundPlaces> {
  const lookups = new Map<boolean, RedisLookup>();
  const lookupFor = (rule: ExplainedRule['rule']): RedisLookup => {
    const second = settings.perSecond && rule.rate !== undefined && isPerSecond({ rate: rule.rate });
    let lookup = lookups.get(second);
    if (lookup === undefined) {
      lookup = new RedisLookup((second ? perSecondRedis(settings) : undefined) ?? mainRedis(settings));
      lookups.set(second, lookup);
    }
    return lookup;
  };
  const progress = setInterval(
    () => io.err('weir explain: still waiting for Redis to return the locations of the buckets\n'),
    PROGRESS_MS,
  );
  const places = new Map<ExplainedRule, BucketPlace>();
  const sentences = new Set<string>();
  try {
    for (const explained of rules) {
      const place = bucketPlaceOf(explained, settings.cacheKeyPrefix + DEFAULT_KEY_PREFIX);
      if (place === undefined) continue;
      places.set(explained, place);
      try {
        places.set(explained, { ...place, node: await lookupFor(explained.rule).serverOf(place.slot) });
      } catch (error) {
        for (const line of error instanceof StartError ? error.lines : [(error as Error).message])
          sentences.add(line);
      }
    }
  } finally {
    clearInterval(progress);
    for (const lookup of lookups.values()) lookup.close();
  }
  return { places, sentences: [...sentences] };
}

/**
 * Returns the Redis key and slot of a rule's bucket, for keys that begin with `prefix`. Returns undefined for an
 * unlimited rule.
 */
export function bucketPlaceOf(
  { rule, key, hashTagLength }: ExplainedRule,
  prefix = DEFAULT_KEY_PREFIX,
): BucketPlace | undefined {
  // An unlimited rule has no bucket.
  if (rule.rate === undefined) return undefined;
  const named = redisKey({ key, hashTagLength }, prefix);
  return { key: named, slot: slotOfKey(named) };
}
