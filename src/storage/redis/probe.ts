import type { TakeItem } from '../../limiter/bucket-store.js';
import { tokenBucketRate } from '../../limiter/token-bucket.js';
import type { SendCommand } from './connection/connection-options.js';
import { RedisReplyError } from './connection/redis-error.js';
import type { RedisKeys } from './redis-key.js';
import type { RedisStoreOptions } from './redis-store-options.js';

/** A take from a bucket that fills within 1 s, so that its key expires soon. */
export const PROBE: TakeItem = {
  key: 'probe',
  tagLength: 5,
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
