import { Redis } from 'ioredis';
import type { Descriptor } from '../../../src/codec/messages.js';
import { RlsClient } from '../grpc/rls-client.js';
import { startWeir } from '../weir/weir.js';
import { startRedis } from './redis-server.js';

/** Memory of a bucket in Redis. */
export interface BucketMemory {
  readonly kind: string;
  /** Length of the tenant's name, in characters. */
  readonly nameLength: number;
  /** An example key and its value. */
  readonly key: string;
  readonly value: string;
  /** `MEMORY USAGE` of that key, in bytes. */
  readonly usageBytes: number;
  /** Growth of `used_memory` for each bucket, in bytes, including the tables of keys and of expirations. */
  readonly grownBytes: number;
}

/** Kinds of buckets, with the limit of each. No bucket expires during a run. */
const KINDS: Readonly<Record<string, string>> = {
  'token bucket': 'rate_limit: { token_bucket: { max_tokens: 1000, tokens_per_fill: 7, fill_interval: 1h } }',
  window: 'rate_limit: { unit: day, requests_per_unit: 1000 }',
};

/** Keys of the same length for all kinds. */
const groupOf = (kind: string): string => kind.replace(' ', '-').padEnd(12, '-');

const POLICY = `domain: open-api
descriptors:
  - key: tenant
    descriptors:
${Object.entries(KINDS)
  .map(([kind, limit]) => `      - { key: resource_group, value: ${groupOf(kind)}, ${limit} }`)
  .join('\n')}
`;

/** Number of descriptors in a request. */
const AT_ONCE = 100;

const usedMemory = async (redis: Redis): Promise<number> =>
  Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);

function descriptorOf(kind: string, nameLength: number, tenant: number): Descriptor {
  return {
    entries: [
      { key: 'tenant', value: String(tenant).padStart(nameLength, 't') },
      { key: 'resource_group', value: groupOf(kind) },
    ],
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
  };
}

/**
 * Measures buckets: a real weir creates a bucket for each of `tenants` tenants in a real Redis (the program `binary`),
 * for each kind of limit and each length of names.
 */
export async function measureBucketMemory(
  binary: string,
  tenants: number,
  nameLengths: readonly number[],
): Promise<readonly BucketMemory[]> {
  const server = await startRedis({ binary });
  const redis = new Redis(server.port, '127.0.0.1');
  const weir = await startWeir({ policy: POLICY, env: { REDIS_URL: `127.0.0.1:${server.port}` } });
  const client = new RlsClient(weir.grpcPort);
  const measured: BucketMemory[] = [];
  try {
    for (const kind of Object.keys(KINDS)) {
      for (const nameLength of nameLengths) {
        await redis.flushall('SYNC');
        const before = await usedMemory(redis);
        for (let first = 0; first < tenants; first += AT_ONCE) {
          const count = Math.min(AT_ONCE, tenants - first);
          const descriptors = Array.from({ length: count }, (_, at) =>
            descriptorOf(kind, nameLength, first + at),
          );
          const { response, details } = await client.ask('open-api', descriptors);
          if (response?.statuses.length !== count) throw new Error(`weir has not decided: ${details}`);
        }
        const grown = (await usedMemory(redis)) - before;
        const key = (await redis.randomkey()) as string;
        const value = (await redis.get(key)) as string;
        const usageBytes = Number(await redis.memory('USAGE', key));
        measured.push({ kind, nameLength, key, value, usageBytes, grownBytes: grown / tenants });
      }
    }
    return measured;
  } finally {
    client.close();
    await weir.stop();
    redis.disconnect();
    await server.stop();
  }
}
