import { join } from 'node:path';
import { createReferenceCodec } from '../../src/codec/reference-codec.js';
import { type StartedProcess, startProcess, stopAllProcesses } from '../support/processes.js';
import { startRedis } from '../support/redis-server.js';
import { startWeir } from '../support/weir.js';

/** A server under load. */
export interface BenchTarget {
  readonly name: string;
  readonly pid: number;
  readonly redisPid: number | undefined;
  readonly port: number;
  /** The encoded RateLimitRequest to send. */
  readonly message: Uint8Array;
}

/** A bucket that never runs dry, two levels deep: every decision is a full one, and all are allowed. */
const POLICY = `
domain: bench
response_headers: [x-ratelimit]
descriptors:
  - key: tenant
    descriptors:
      - key: resource_group
        rate_limit:
          name: bench
          token_bucket: { max_tokens: 4000000000, tokens_per_fill: 1000000, fill_interval: 1s }
`;

async function emptyServer(): Promise<{ process: StartedProcess; port: number }> {
  const started = startProcess(process.execPath, [join(__dirname, 'empty-server.js')]);
  const line = await started.waitForLine(/^\d+$/);
  return { process: started, port: Number(line) };
}

/** Starts the yardstick first, then weir in memory and weir with Redis. */
export async function startTargets(): Promise<{ all: readonly BenchTarget[]; stop(): Promise<void> }> {
  const message = createReferenceCodec().encodeRequest({
    domain: 'bench',
    hitsAddend: 0,
    descriptors: [
      {
        entries: [
          { key: 'tenant', value: 'acme' },
          { key: 'resource_group', value: 'user-chats' },
        ],
        limit: undefined,
        hitsAddend: undefined,
        isNegativeHits: false,
      },
    ],
  });
  const empty = await emptyServer();
  const redis = await startRedis();
  const memory = await startWeir({ policy: POLICY });
  const shared = await startWeir({ policy: POLICY, env: { REDIS_URL: `127.0.0.1:${redis.port}` } });
  return {
    all: [
      {
        name: 'empty grpc-js handler',
        pid: empty.process.pid,
        redisPid: undefined,
        port: empty.port,
        message,
      },
      { name: 'weir, memory', pid: memory.process.pid, redisPid: undefined, port: memory.grpcPort, message },
      { name: 'weir, Redis', pid: shared.process.pid, redisPid: redis.pid, port: shared.grpcPort, message },
    ],
    stop: async () => {
      await stopAllProcesses();
      await redis.stop();
    },
  };
}
