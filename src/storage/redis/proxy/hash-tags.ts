import type { SendCommand } from '../connection/connection-options.js';
import { PROBE_KEY_MS, probeKeys } from '../connection/expect-server.js';
import { RedisReplyError } from '../connection/redis-error.js';
import { redisFaultOf } from '../connection/redis-fault.js';
import { SHORT_TEXT } from '../connection/reply-bound.js';

/** Whether keys with the same hash tag are on one server behind a proxy; `unknown` if a server did not reply. */
export type HashTags = 'honoured' | 'ignored' | 'unknown';

/** Result of {@link detectHashTags}. */
export interface HashTagFinding {
  readonly tags: HashTags;
  /** Error of a server that could not be tested, or ''. */
  readonly failure: string;
  /** At least one key on servers that run scripts. */
  readonly living: readonly string[];
}

/**
 * Number of pairs of keys. If each of two servers has half of all keys, all pairs are on one server each with a
 * probability of 2^-32.
 */
const PAIRS = 32;
/** A script that removes the second key, and returns whether it was on the server of the first key. */
const REMOVE_SECOND = "return redis.call('DEL',KEYS[2])";

/**
 * Writes the second key of 32 pairs, each pair with its own hash tag. Reads it with a script that runs on the server of
 * the first key. `prefix` is the prefix of all keys, see redisKey. Rejects if no pair works, or if the connection is
 * lost.
 */
export async function detectHashTags(send: SendCommand, prefix: string | undefined): Promise<HashTagFinding> {
  const pairs = Array.from({ length: PAIRS }, () => probeKeys(2, prefix) as [string, string]);
  // The scripts are sent after the replies to all writes, because a proxy may have several connections to a server.
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
  const areSeparated = found.some((one, i) => {
    return one.status === 'fulfilled' && one.value !== 1 && written[i]?.status === 'fulfilled';
  });
  return {
    tags: areSeparated ? 'ignored' : failure === '' ? 'honoured' : 'unknown',
    failure,
    living: workingKeys,
  };
}

/** Returns the errors of servers. Throws errors that end the connection, and errors that cannot come from a proxy. */
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
