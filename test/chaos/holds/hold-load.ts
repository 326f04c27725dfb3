import { Random } from '../../fuzz/random.js';
import { type Caller, http2Caller } from '../../support/envoy/caller.js';
import { startHoldEnvoy } from '../../support/envoy/hold-envoy.js';
import { closeLater } from '../../support/process/close-later.js';
import { waitFor } from '../../support/process/wait-for.js';
import { startPausableProxy } from '../../support/redis/pausable-proxy.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { sleep } from '../sleep.js';
import { HoldClients, SlowUpstream } from './hold-clients.js';
import { HoldLedger } from './hold-ledger.js';

const MAX = 10;
const CLIENTS = 200;
const WEIRS = 3;
const ENVOYS = 2;
/** Connections to each Envoy; Envoy accepts 100 concurrent requests on each. */
const CONNECTIONS = 2;
const LEAST_FULL_SHARE = 0.9;
/** Maximum time in seconds in which holds end after the last client left, or expire after their time. */
const MOST_SECONDS_LATE = 1;

export interface HoldLoadOptions {
  readonly ms: number;
  /** Determines which clients leave, and when, and how long the upstream takes. */
  readonly seed: number;
  /** Whether to kill a weir, an Envoy and Redis during the load. Redis then writes each change to its disk. */
  readonly kills?: boolean;
  print(line: string): void;
}

const policy = (expiresSeconds: number) => `
domain: exports
descriptors:
  - key: tenant
    rate_limit: { concurrency: { max: ${MAX}, expires_after: ${expiresSeconds}s } }
`;

/** Starts all processes of the load. */
async function startTestbed(
  { kills, expiresSeconds }: { kills: boolean; expiresSeconds: number },
  upstreamPort: number,
) {
  const redis = await startRedis({ args: kills ? ['--appendonly', 'yes', '--appendfsync', 'always'] : [] });
  const toRedis = await startPausableProxy(redis.port);
  const start = (ports?: WeirServer) =>
    startWeir({
      policy: policy(expiresSeconds),
      env: { REDIS_URL: `redis://127.0.0.1:${toRedis.port}` },
      ...(ports !== undefined && { ports }),
    });
  const weirs = await Promise.all(Array.from({ length: WEIRS }, () => start()));
  const startEnvoy = () =>
    startHoldEnvoy({
      domain: 'exports',
      weirPort: weirs.map(({ grpcPort }) => grpcPort),
      upstreamPort,
      keys: ['tenant'],
    });
  const envoys = await Promise.all(Array.from({ length: ENVOYS }, startEnvoy));
  const connections = (port: number) => Array.from({ length: CONNECTIONS }, () => http2Caller(port));
  const callers: Caller[] = envoys.flatMap(({ port }) => connections(port));
  const ledger = closeLater(new HoldLedger('acme', MAX), (one) => one.close());
  await ledger.follow(redis.port);

  const killWeir = async () => {
    const [killed] = weirs as [WeirServer];
    await killed.stop('SIGKILL');
    weirs[0] = await start(killed);
  };
  const killEnvoy = async () => {
    const killed = envoys[0]?.stop('SIGKILL');
    // The other Envoy serves all clients meanwhile.
    const closed = callers.splice(0, CONNECTIONS);
    await killed;
    for (const caller of closed) caller.close();
    envoys[0] = await startEnvoy();
    callers.unshift(...connections(envoys[0].port));
  };
  const killRedis = async () => {
    toRedis.pause('requests');
    await redis.kill();
    await redis.restart();
    await ledger.follow(redis.port);
    toRedis.resume();
  };
  return { callers, ledger, faults: [killWeir, killEnvoy, killRedis] };
}

/**
 * Sends slow requests through two Envoys and three weir servers with one Redis to a limit of ten concurrent requests.
 * Returns what was wrong.
 */
export async function holdLoad({ ms, seed, kills = false, print }: HoldLoadOptions): Promise<string[]> {
  const random = new Random(seed);
  const expiresSeconds = kills ? 2 : 60;
  const upstream = await SlowUpstream.start(kills ? 400 : 1000, random);
  const { callers, ledger, faults } = await startTestbed({ kills, expiresSeconds }, upstream.port);
  const clients = new HoldClients('acme', callers, random);
  const load = clients.run(CLIENTS);
  const parts = kills ? faults : [async () => {}];
  for (const fault of parts) {
    await sleep(ms / parts.length);
    await fault();
  }
  if (kills) await sleep(ms / parts.length);
  const fullShare = ledger.fullShare(Date.now() / 1000);
  clients.stop();
  const quietAt = Date.now() / 1000;
  await load;
  const { holds } = ledger;
  const inFlight = () => holds.countAt(Date.now() / 1000);
  await waitFor('no request in flight', () => inFlight() === 0 || undefined).catch(() => {});
  const left = inFlight();
  const secondsToZero = left === 0 ? Math.max(0, holds.changedAt - quietAt) : Number.POSITIVE_INFINITY;

  const percent = (100 * fullShare).toFixed(1);
  print(`${ledger.placed} holds; ${clients.summary()}`);
  print(`in flight: at most ${holds.most} by the holds in Redis, at most ${upstream.most} at the upstream`);
  print(`${MAX} in flight for ${percent} % of the time`);
  print(`0 in flight ${(1000 * secondsToZero).toFixed(0)} ms after the last client left`);
  const failures: string[] = [];
  if (holds.most > MAX) failures.push(`${holds.most} requests were in flight`);
  if (!kills && fullShare < LEAST_FULL_SHARE)
    failures.push(`${MAX} requests were in flight for only ${percent} % of the time`);
  if (secondsToZero > MOST_SECONDS_LATE + (kills ? expiresSeconds : 0))
    failures.push(`${left} requests were in flight ${secondsToZero} s after the last client left`);
  return failures;
}
