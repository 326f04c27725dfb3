import type { SendCommand } from '../connection/connection-options.js';
import { PROBE_KEY_MS, probeKeys } from '../connection/expect-server.js';
import { RedisReplyError } from '../connection/redis-error.js';
import { redisFaultOf } from '../connection/redis-fault.js';
import { SHORT_TEXT } from '../connection/reply-bound.js';

/**
 * Whether keys with the same hash tag lie on one server behind a proxy; `unknown` where a server could not be asked.
 */
export type HashTags = 'honoured' | 'ignored' | 'unknown';

/** What {@link detectHashTags} found. */
export interface HashTagFinding {
  readonly tags: HashTags;
  /** What a server said that could not be asked. */
  readonly failure: string;
  /** Keys on servers that run scripts, at least one. */
  readonly living: readonly string[];
}

/** On two servers with half of the keys each, all pairs lie together by chance once in 2 to the power of 32. */
const PAIRS = 32;
/** Answers whether the second key lies where the first one does, and removes it. */
const REMOVE_SECOND = "return redis.call('DEL',KEYS[2])";

/**
 * Writes the second key of 32 pairs, each with a hash tag of its own, and looks for it by a script that runs where the
 * first one lies. `prefix` is that of keys, see redisKey. Rejects where nothing can be done, or the connection is lost.
 */
export async function detectHashTags(send: SendCommand, prefix: string | undefined): Promise<HashTagFinding> {
  const pairs = Array.from({ length: PAIRS }, () => probeKeys(2, prefix) as [string, string]);
  // Each is answered before the scripts are sent: a proxy may have several connections to a server.
  const written = await Promise.allSettled(
    pairs.map(([, second]) => send('set', [second, '1', 'PX', PROBE_KEY_MS], SHORT_TEXT)),
  );
  const refusals = refusalsAmong(written);
  if (refusals.length === PAIRS) throw refusals[0];
  const found = await Promise.allSettled(
    pairs.map((pair) => send('eval', [REMOVE_SECOND, '2', ...pair], SHORT_TEXT)),
  );
  const failures = refusalsAmong(found);
  if (failures.length === PAIRS) throw failures[0];
  const workingKeys = pairs.filter((_, i) => found[i]?.status === 'fulfilled').map(([first]) => first);
  const failure = (refusals[0] ?? failures[0])?.message ?? '';
  const isApart = found.some((one, i) => {
    return one.status === 'fulfilled' && one.value !== 1 && written[i]?.status === 'fulfilled';
  });
  return {
    tags: isApart ? 'ignored' : failure === '' ? 'honoured' : 'unknown',
    failure,
    living: workingKeys,
  };
}

/** What servers refused. Throws what ends the connection, and what says that there is no proxy at all. */
function refusalsAmong(answers: readonly PromiseSettledResult<unknown>[]): RedisReplyError[] {
  const refusals: RedisReplyError[] = [];
  for (const answer of answers) {
    if (answer.status === 'fulfilled') continue;
    const { reason } = answer;
    if (!(reason instanceof RedisReplyError) || redisFaultOf(reason.message).reason === 'cluster')
      throw reason;
    refusals.push(reason);
  }
  return refusals;
}
