import type { TakeItem } from '../../limiter/bucket-store.js';
import { tokenBucketRate } from '../../limiter/token-bucket.js';
import type { SendCommand } from './connection/connection-options.js';
import { expectSingleServer } from './connection/expect-server.js';
import { RedisReplyError } from './connection/redis-error.js';
import { SHORT_TEXT } from './connection/reply-bound.js';
import type { RedisKeys } from './redis-key.js';
import type { RedisStoreOptions } from './redis-store-options.js';

/** The probe's bucket fills in a second, so its key does not stay. */
export const PROBE: TakeItem = {
  key: 'probe',
  tagLength: 5,
  rate: tokenBucketRate(1_000_000, 1_000_000, 1_000_000),
  hits: 1,
  refund: false,
  enforcement: 'observe',
};

/**
 * Does what calls do, by `take`: takes from a bucket under a key that nobody uses, or asks for a sign of life where
 * there is no such key. Rejects where that does not work. `isNew`: nothing is known yet of what answers on this
 * connection.
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
    // It serves the slot still, which is on its way to another node; keys that are new are made there.
    if (!(error instanceof RedisReplyError) || error.code !== 'ASK') throw error;
  }
}

/**
 * Rejects where the user may not ask a node for a slot that is on its way there: else that was found out when the slot
 * is moved. It holds for the next command only, and changes nothing for a slot that the node serves.
 */
async function expectAsking(send: SendCommand): Promise<void> {
  try {
    await send('asking', [], SHORT_TEXT);
  } catch (error) {
    // What only looks like a cluster may not know it.
    if (!(error instanceof RedisReplyError) || error.code === 'NOPERM') throw error;
  }
}
