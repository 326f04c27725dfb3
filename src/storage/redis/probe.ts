import { randomBytes } from 'node:crypto';
import type { Take } from '../../limiter/bucket-store.js';
import { tokenBucketRate } from '../../limiter/token-bucket.js';
import type { SendCommand } from './connection/connection-options.js';
import { IS_PROXY, RedisReplyError } from './connection/redis-error.js';
import { nodeFaultOf } from './node/faults.js';
import type { RedisKeys } from './redis-key.js';
import type { RedisStoreOptions } from './redis-store-options.js';

/**
 * Number of scripts that are called, each with another key. If each of two servers has half of all keys, all scripts
 * run on one of them with a probability of 2^-7.
 */
const PROBE_KEYS = 8;
/** A script that returns the `run_id` of its server, or '' if the server does not report it. */
const RUN_ID = "return string.match(redis.call('INFO','server'),'run_id:(%x+)') or ''";

/** A take from a bucket that fills within 1 s, so that its key expires soon. */
export const PROBE: Take = {
  key: 'probe',
  hashTagLength: 5,
  rate: tokenBucketRate(1_000_000, 1_000_000, 1_000_000),
  hits: 1,
  refund: false,
  enforcement: 'observe',
};

/**
 * Tests with `take`, in an unused bucket, whether Redis supports the commands that calls need. Without a key, only
 * sends PING. Rejects if the test fails. `isNew`: the server of this connection has not been tested yet.
 */
export async function probeRedis(
  send: SendCommand,
  isNew: boolean,
  probeTag: RedisStoreOptions['probeTag'],
  keys: RedisKeys,
  take: (key: string | undefined) => Promise<void>,
): Promise<void> {
  if (probeTag === undefined) return take(keys.of(PROBE));
  const tag = probeTag();
  if (tag === undefined) return take(undefined);
  if (isNew) await expectAsking(send);
  try {
    await take(keys.ownKey(tag, PROBE.key));
  } catch (error) {
    // During a migration, the node still serves the slot, but new keys are created on the other node.
    if (!(error instanceof RedisReplyError) || error.code !== 'ASK') throw error;
  }
}

/**
 * Rejects if the user has no permission for ASKING. Otherwise, the missing permission would only surface during a
 * migration. ASKING applies only to the next command, and has no effect for a slot that the node serves.
 */
async function expectAsking(send: SendCommand): Promise<void> {
  try {
    await send('asking', []);
  } catch (error) {
    // A service that only resembles a Redis Cluster may not support the command.
    if (!(error instanceof RedisReplyError) || error.code === 'NOPERM') throw error;
  }
}

/**
 * Rejects if scripts with different keys run on different servers, as behind a sharding proxy. Several servers would
 * then count the same bucket. Accepts a server that does not let scripts call INFO.
 */
export async function expectSingleServer(send: SendCommand, keys: RedisKeys): Promise<void> {
  const unused = Array.from({ length: PROBE_KEYS + 1 }, () =>
    keys.ownKey(randomBytes(8).toString('hex'), PROBE.key),
  );
  // The second key makes every node of a Redis Cluster refuse the script, even a node that serves all slots.
  const calls = unused.slice(1).map((key, i) => send('eval', [RUN_ID, '2', key, unused[i] as string]));
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
