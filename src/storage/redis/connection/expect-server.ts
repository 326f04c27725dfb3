import { randomBytes } from 'node:crypto';
import { nodeFaultOf } from '../node/faults.js';
import { redisKey } from '../redis-key.js';
import type { SendCommand } from './connection-options.js';
import { IS_PROXY, RedisReplyError } from './redis-error.js';

/**
 * Number of scripts that are called, each with another key. If each of two servers has half of all keys, all scripts
 * run on one of them with a probability of 2^-7.
 */
const PROBE_KEYS = 8;
/** A script that returns the `run_id` of its server, or '' if the server does not report it. */
const RUN_ID = "return string.match(redis.call('INFO','server'),'run_id:(%x+)') or ''";

/**
 * Rejects if scripts with different keys run on different servers, as behind a sharding proxy. Several servers would
 * then count the same bucket. Accepts a server that does not let scripts call INFO. `prefix` is the prefix of all keys,
 * see redisKey.
 */
export async function expectSingleServer(send: SendCommand, prefix: string | undefined): Promise<void> {
  const keys = probeKeys(PROBE_KEYS + 1, prefix);
  // The second key makes every node of a Redis Cluster refuse the script, even a node that serves all slots.
  const calls = keys.slice(1).map((key, i) => send('eval', [RUN_ID, '2', key, keys[i] as string]));
  const runIds = new Set<string>();
  let refusal: RedisReplyError | undefined;
  for (const answer of await Promise.allSettled(calls)) {
    if (answer.status === 'fulfilled') runIds.add(String(answer.value));
    else if (answer.reason instanceof RedisReplyError) refusal ??= answer.reason;
    else throw answer.reason;
  }
  if (runIds.size > 1)
    throw new Error(`${IS_PROXY} scripts with ${PROBE_KEYS} keys ran on ${runIds.size} servers`);
  if (refusal === undefined) return;
  // If only some servers behind a proxy answer, the check is repeated.
  if (runIds.size > 0 || nodeFaultOf(refusal.message).label === 'moved') throw refusal;
}

/** Returns the keys of `count` unused buckets, each with its own hash tag. */
function probeKeys(count: number, prefix: string | undefined): string[] {
  return Array.from({ length: count }, () => {
    const key = `probe ${randomBytes(8).toString('hex')}`;
    return redisKey({ key, tagLength: key.length }, prefix);
  });
}

/**
 * Returns a warning if a Redis may evict buckets. Resolves with undefined if it does not, or does not tell. Never
 * rejects.
 */
export async function evictionWarning(send: SendCommand): Promise<string | undefined> {
  const info = String(await send('info', ['memory']).catch(() => ''));
  const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? [];
  if (policy === 'noeviction' || !/^maxmemory:[1-9]/m.test(info)) return undefined;
  return (
    `may evict buckets (maxmemory-policy ${policy}), which are then full again; ` +
    'set maxmemory-policy to noeviction'
  );
}
