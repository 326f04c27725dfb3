import type { TakeItem } from '../../limiter/bucket-store.js';
import { tokenBucketRate } from '../../limiter/token-bucket.js';
import type { SendCommand } from './connection/connection-options.js';
import { expectSingleServer } from './connection/expect-server.js';
import { RedisReplyError } from './connection/redis-error.js';
import { SHORT_TEXT } from './connection/reply-bound.js';
import type { RedisKeys } from './redis-key.js';
import type { RedisStoreOptions } from './redis-store-options.js';

/** A take of a bucket that fills in 1 s, so that its key does not remain. */
export const PROBE: TakeItem = {
  key: 'probe',
  tagLength: 5,
  rate: tokenBucketRate(1_000_000, 1_000_000, 1_000_000),
  hits: 1,
  refund: false,
  enforcement: 'observe',
};

/**
 * Probes Redis with what calls need: takes from an unused bucket with `take`, or only pings if there is no key. Rejects
 * if that fails. `isNew`: nothing is known yet about the server of this connection.
 */
export async function probeRedis(
  send: SendCommand,
  isNew: boolean,
  { proxied, probeTag, keyPrefix, keys }: RedisStoreOptions & { readonly keys: RedisKeys },
  take: (key: string | undefined) => Promise<void>,
): Promise<void> {
  if (proxied !== undefined) {
    await proxied.probe(send, take);
    return;
  }
  if (probeTag === undefined) {
    await Promise.all([take(keys.of(PROBE)), isNew ? expectSingleServer(send, keyPrefix) : undefined]);
    return;
  }
  const tag = probeTag();
  if (tag === undefined) return take(undefined);
  if (isNew) await expectAsking(send);
  try {
    await take(keys.ownKey(tag, PROBE.key));
  } catch (error) {
    // The node still serves the slot during its migration, but new keys are created on the other node.
    if (!(error instanceof RedisReplyError) || error.code !== 'ASK') throw error;
  }
}

/**
 * Rejects if the user has no permission for ASKING, which would otherwise only surface when a slot is migrated. ASKING
 * applies to the next command only, and changes nothing for a slot that the node serves.
 */
async function expectAsking(send: SendCommand): Promise<void> {
  try {
    await send('asking', [], SHORT_TEXT);
  } catch (error) {
    // A service that only resembles a cluster may not support it.
    if (!(error instanceof RedisReplyError) || error.code === 'NOPERM') throw error;
  }
}
