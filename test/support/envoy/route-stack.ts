import { startEchoUpstream } from '../../../deploy/demo/echo-upstream.js';
import { type RedisServer, startRedis } from '../redis/redis-server.js';
import { startWeir } from '../weir/weir.js';
import { type RouteEnvoyOptions, startRouteEnvoy } from './route-envoy.js';

/** Options of {@link startRouteStack}: those of Envoy, and the policy and settings of weir. */
export interface RouteStackOptions extends Omit<RouteEnvoyOptions, 'weirPort' | 'upstreamPort'> {
  readonly policy: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** A real Envoy with a test's routes, in front of an upstream that echoes requests, with weir and its Redis. */
export interface RouteStack {
  /** Port of Envoy. */
  readonly port: number;
  readonly redis: RedisServer;
  stop(): Promise<void>;
}

/** Starts all of them. If one does not start, the others are stopped. */
export async function startRouteStack({ policy, env, ...options }: RouteStackOptions): Promise<RouteStack> {
  const stops: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const one of stops.splice(0).reverse()) await one();
  };
  try {
    const upstream = await startEchoUpstream(0);
    stops.push(() => {
      upstream.server.closeAllConnections();
      upstream.server.close();
    });
    const redis = await startRedis();
    stops.push(() => redis.stop());
    const weir = await startWeir({ policy, env: { REDIS_URL: `127.0.0.1:${redis.port}`, ...env } });
    stops.push(() => weir.stop());
    const envoy = await startRouteEnvoy({
      ...options,
      weirPort: weir.grpcPort,
      upstreamPort: upstream.port,
    });
    stops.push(() => envoy.stop());
    return { port: envoy.port, redis, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
