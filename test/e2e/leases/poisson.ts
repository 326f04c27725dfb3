import { createClientCodec } from '../../../src/codec/client-codec.js';
import { CODE } from '../../../src/codec/messages.js';
import { RlsClient, type RlsReply } from '../../support/grpc/rls-client.js';
import { seededRandom } from '../../support/limiter/seeded-random.js';
import type { WeirServer } from '../../support/weir/weir.js';

/** A load of one customer. */
export interface Load {
  readonly perSecond: number;
  readonly seconds: number;
}

/** Time between the batches of requests, in milliseconds. */
const TICK = 2;

/** An encoded RateLimitRequest of one customer. */
export const REQUEST = createClientCodec().encodeRequest({
  domain: 'shop',
  hitsAddend: 0,
  descriptors: [
    {
      entries: [{ key: 'customer', value: 'acme' }],
      limit: undefined,
      hitsAddend: undefined,
      isNegativeHits: false,
    },
  ],
});

/** Sends {@link REQUEST} to the servers in turn, at random times. Resolves with all replies, in order of sending. */
export async function sendAtRandom(
  servers: readonly WeirServer[],
  { perSecond, seconds }: Load,
): Promise<RlsReply[]> {
  const clients = servers.map(({ grpcPort }) => new RlsClient(grpcPort));
  const random = seededRandom(57);
  const replies: Promise<RlsReply>[] = [];
  const [start, end] = [performance.now(), seconds * 1000];
  let dueMs = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const elapsed = performance.now() - start;
      while (dueMs <= Math.min(elapsed, end)) {
        replies.push((clients[replies.length % clients.length] as RlsClient).send(REQUEST));
        dueMs += (-Math.log(1 - random()) * 1000) / perSecond;
      }
      if (dueMs < end) return;
      clearInterval(timer);
      resolve();
    }, TICK);
  });
  return Promise.all(replies);
}

export const isAllowed = ({ response }: RlsReply): boolean => response?.overallCode === CODE.OK;
