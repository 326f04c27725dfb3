import type { Server } from 'node:http';
import { startEchoUpstream } from '../../deploy/demo/echo-upstream.js';
import { type EnvoyServer, startEnvoy } from './envoy.js';
import { startRedis } from './redis-server.js';
import { startWeir, type WeirServer } from './weir.js';

export interface StackOptions {
  /** Where the buckets live. */
  readonly store?: 'memory' | 'redis';
  /** Bootstrap to start Envoy with: deploy/envoy/envoy.yaml. */
  readonly envoyFile?: string;
  /** Changes of the bootstrap's text, beside the addresses. */
  readonly changes?: readonly (readonly [from: string, to: string])[];
  /** Text of a policy to serve instead of the bundled one. */
  readonly policy?: string;
}

/** What a client of the API sees, and all that stands behind it, on loopback. */
export interface Stack {
  readonly envoy: EnvoyServer;
  readonly weir: WeirServer;
  readonly upstreamPort: number;
  stop(): Promise<void>;
}

/**
 * A decision that comes late counts as none in Envoy, and a request without a decision passes. A busy machine must not change the counts
 * of a test, so tests wait longer than the shipped files do.
 */
export const PATIENT: readonly (readonly [string, string])[] = [['timeout: 0.25s', 'timeout: 10s']];

const closed = (server: Server) =>
  new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

/** Starts upstream, Redis (if asked for), weir and Envoy, in this order. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const one of stops.splice(0).reverse()) await one();
  };
  try {
    const upstream = await startEchoUpstream(0);
    stops.push(() => closed(upstream.server));
    const env: NodeJS.ProcessEnv = {};
    if (options.store === 'redis') {
      const redis = await startRedis();
      stops.push(() => redis.stop());
      env['REDIS_URL'] = `redis://127.0.0.1:${redis.port}`;
    }
    const weir = await startWeir({ env, ...(options.policy !== undefined && { policy: options.policy }) });
    stops.push(() => weir.stop());
    const envoy = await startEnvoy({
      file: options.envoyFile ?? 'deploy/envoy/envoy.yaml',
      weirPort: weir.grpcPort,
      upstreamPort: upstream.port,
      changes: options.changes ?? PATIENT,
    });
    stops.push(() => envoy.stop());
    return { envoy, weir, upstreamPort: upstream.port, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
