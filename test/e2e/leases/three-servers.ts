import { Agent, request } from 'node:http';
import { fromHeader, startRouteEnvoy } from '../../support/envoy/route-envoy.js';
import { startUpstream } from '../../support/envoy/stack.js';
import { preloading } from '../../support/process/preload.js';
import { scrape, sumOf } from '../../support/prometheus/metrics-text.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import type { SeenRequest } from './bounds.js';

/** Three weirs with one Redis, each behind an Envoy of its own, and the log of their upstream. */
export interface ThreeServers {
  readonly redis: RedisServer;
  readonly weirs: WeirServer[];
  readonly envoyPorts: readonly number[];
  readonly seen: SeenRequest[];
  /** Kills a weir, and starts another one in its place. */
  replace(index: number): Promise<void>;
  /** Resolves with the number of requests that needed no trip to Redis, also of weirs that were killed. */
  saved(): Promise<number>;
}

/** Header of a request with the times when it was sent. */
const SENT = 'x-sent';
/** Maximum number of unanswered requests of each Envoy. */
const IN_FLIGHT = 64;
/** Time between the batches of a sender, in milliseconds. */
const TICK = 5;
const HOUR_MS = 3_600_000;

/**
 * Starts three weirs, whose wall clocks are right, an hour fast and an hour slow. Without a decision, an Envoy denies
 * the request, so that the upstream sees only requests that weir has allowed.
 */
export async function startThreeServers(policy: string): Promise<ThreeServers> {
  const redis = await startRedis();
  const startOne = (index: number, ports?: WeirServer): Promise<WeirServer> =>
    startWeir({
      policy,
      env: {
        REDIS_URL: `127.0.0.1:${redis.port}`,
        NODE_OPTIONS: preloading('test/support/clock/shifted-clock.js'),
        WEIR_CLOCK_SHIFT_MS: String([0, HOUR_MS, -HOUR_MS][index]),
      },
      ...(ports !== undefined && { ports }),
    });
  const weirs = await Promise.all([0, 1, 2].map((index) => startOne(index)));
  const upstream = await startUpstream();
  const seen: SeenRequest[] = [];
  upstream.server.prependListener('request', ({ headers }) => {
    const [sentMs = 0, sentWallMs = 0] = String(headers[SENT]).split(' ').map(Number);
    seen.push({ sentMs, sentWallMs, arrivedMs: performance.now(), arrivedWallMs: Date.now() });
  });
  const envoys = await Promise.all(
    weirs.map(({ grpcPort }) =>
      startRouteEnvoy({
        domain: 'shop',
        routes: [{ path: '/', rateLimits: [{ actions: [fromHeader('x-customer', 'customer')] }] }],
        weirPort: grpcPort,
        upstreamPort: upstream.port,
        failureModeDeny: true,
      }),
    ),
  );
  const savedBy = async (weir: WeirServer): Promise<number> =>
    sumOf((await scrape(weir))!, 'weir_lease_trips_saved_total');
  let savedByKilled = 0;
  return {
    redis,
    weirs,
    envoyPorts: envoys.map(({ port }) => port),
    seen,
    async replace(index) {
      const weir = weirs[index] as WeirServer;
      savedByKilled += await savedBy(weir);
      await weir.process.stop('SIGKILL');
      weirs[index] = await startOne(index, weir);
    },
    async saved() {
      const counts = await Promise.all(weirs.map(savedBy));
      return counts.reduce((sum, count) => sum + count, savedByKilled);
    },
  };
}

/** Requests that are sent to all Envoys in turn. */
export interface SendOptions {
  readonly ports: readonly number[];
  readonly perSecond: number;
  /** Whether nothing is sent in each second half of this time, in milliseconds; 0: requests are sent all the time. */
  readonly pauseMs: number;
  /** Requests are sent until this promise has settled. */
  readonly until: Promise<unknown>;
}

/** Sends requests of one customer. Resolves with the numbers of answers by status, when all are answered. */
export async function send({ ports, perSecond, pauseMs, until }: SendOptions): Promise<Map<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
  const open = ports.map(() => 0);
  const statuses = new Map<number, number>();
  const sendOne = (index: number): void => {
    open[index]!++;
    const headers = { 'x-customer': 'acme', [SENT]: `${performance.now()} ${Date.now()}` };
    const target = { host: '127.0.0.1', port: ports[index], path: '/', agent, headers };
    const ended = (status: number): void => {
      open[index]!--;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    };
    request(target, (answer) => {
      answer.resume();
      answer.once('end', () => ended(answer.statusCode ?? 0));
    })
      .once('error', () => ended(0))
      .end();
  };
  let isDone = false;
  until
    .finally(() => {
      isDone = true;
    })
    .catch(() => {});
  const start = performance.now();
  let due = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const elapsed = performance.now() - start;
      const next = Math.floor((elapsed * perSecond) / 1000);
      const sends = pauseMs === 0 || elapsed % (2 * pauseMs) < pauseMs;
      for (; due < next; due++) {
        const index = due % ports.length;
        // A request that an Envoy with too many open requests cannot take is not sent later.
        if (sends && !isDone && (open[index] as number) < IN_FLIGHT) sendOne(index);
      }
      if (!isDone || open.some((number) => number > 0)) return;
      clearInterval(timer);
      resolve();
    }, TICK);
  });
  agent.destroy();
  return statuses;
}
