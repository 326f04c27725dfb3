import { type RedisServer, startRedis } from '../redis/redis-server.js';
import { startWeir } from '../weir/weir.js';
import { type RouteEnvoyOptions, startRouteEnvoy } from './route-envoy.js';
import { startUpstream } from './stack.js';

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
}

/** Starts all of them. */
export async function startRouteStack({ policy, env, ...options }: RouteStackOptions): Promise<RouteStack> {
  const upstream = await startUpstream();
  const redis = await startRedis();
  const weir = await startWeir({ policy, env: { REDIS_URL: `127.0.0.1:${redis.port}`, ...env } });
  const envoy = await startRouteEnvoy({ ...options, weirPort: weir.grpcPort, upstreamPort: upstream.port });
  return { port: envoy.port, redis };
}
