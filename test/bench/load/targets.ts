import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEnvoy } from '../../support/envoy/envoy.js';
import { freePorts } from '../../support/process/free-port.js';
import { type StartedProcess, startProcess } from '../../support/process/processes.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { startCluster } from '../../support/redis/cluster.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';
import { startWeir } from '../../support/weir/weir.js';
import type { BenchCase, BenchStore } from './cases.js';
import { sinkSettings } from './metrics-sinks.js';
import { type Limit, policyText } from './policy.js';

/** A server under load. */
export interface BenchTarget {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  /** Of all its nodes; none without Redis. */
  readonly redisPids: readonly number[];
  readonly tls: boolean;
  /** Where an Envoy listens that asks this server; load goes there if it is set. */
  readonly envoyPort: number | undefined;
}

/** A server that runs already (`--target`). */
export interface GivenTarget {
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  readonly redisPids: readonly number[];
}

/** Which servers a case is run on. */
export interface TargetChoice {
  /** Values of GRPC_TRANSPORT; undefined is weir's default. */
  readonly transports: readonly (string | undefined)[];
  readonly given: GivenTarget | undefined;
  /** The checkouts whose weir is started, each with the name it has in the table; this one if there are none. */
  readonly checkouts: readonly { readonly name: string; readonly folder: string }[];
}

/** Servers of one case, the yardstick first unless checkouts are compared, and what ends them. */
export interface CaseTargets {
  readonly all: readonly BenchTarget[];
  stop(): Promise<void>;
}

const PLAIN = { host: '127.0.0.1', redisPids: [], tls: false, envoyPort: undefined };

/** The yardstick: an empty handler on @grpc/grpc-js, always in clear text. */
async function startYardstick(stops: (() => Promise<unknown>)[]): Promise<BenchTarget> {
  const started: StartedProcess = startProcess(process.execPath, [join(__dirname, '../empty-server.js')]);
  stops.push(() => started.stop('SIGKILL'));
  const line = await started.waitForLine(/^\d+$/);
  return { ...PLAIN, name: 'empty grpc-js handler', pid: started.pid, port: Number(line) };
}

/** Certificate and key of a server on 127.0.0.1, as settings. */
function tlsSettings(stops: (() => Promise<unknown>)[]): NodeJS.ProcessEnv {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-tls-'));
  stops.push(async () => rmSync(folder, { recursive: true, force: true }));
  const { cert, key } = new CertificateAuthority().issue('IP:127.0.0.1');
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key);
  return {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: join(folder, 'cert.pem'),
    GRPC_SERVER_TLS_KEY: join(folder, 'key.pem'),
  };
}

async function behindEnvoy(target: BenchTarget, stops: (() => Promise<unknown>)[]): Promise<BenchTarget> {
  const [upstreamPort = 0] = await freePorts(1);
  const envoy = await startEnvoy({
    file: 'test/bench/load/envoy.yaml',
    weirPort: target.port,
    upstreamPort,
    changes: [['address: 127.0.0.1, port_value: 9191', `address: 127.0.0.1, port_value: ${upstreamPort}`]],
    untilWeirServes: false,
  });
  stops.push(() => envoy.stop());
  return { ...target, envoyPort: envoy.port };
}

/** What one weir of a case is like. */
interface Variant {
  readonly store: BenchStore;
  readonly transport: string | undefined;
  readonly tls: boolean;
  readonly limit: Limit;
}

/** TLS is measured beside the same server in clear text, other limits beside the plain one. */
function variantsOf(bench: BenchCase, transports: TargetChoice['transports']): Variant[] {
  return bench.stores.flatMap((store) =>
    transports.flatMap((transport) =>
      (bench.tls ? [false, true] : [false]).flatMap((tls) =>
        bench.limits.map((limit) => ({ store, transport, tls, limit })),
      ),
    ),
  );
}

/** Nodes of a Redis Cluster. */
const MASTERS = 3;

/** Starts what a weir keeps its buckets in. Its processes, and the settings that lead to it. */
async function startStore(
  store: BenchStore,
  stops: (() => Promise<unknown>)[],
): Promise<{ readonly redisPids: readonly number[]; readonly env: NodeJS.ProcessEnv }> {
  if (store === 'memory') return { redisPids: [], env: {} };
  if (store === 'Redis') {
    const redis = await startRedis();
    stops.push(() => redis.stop());
    return { redisPids: [redis.pid], env: { REDIS_URL: `127.0.0.1:${redis.port}` } };
  }
  const cluster = await startCluster({ masters: MASTERS });
  stops.push(() => cluster.stop());
  return {
    redisPids: cluster.nodes.map(({ server }) => server.pid),
    env: { REDIS_TYPE: 'CLUSTER', REDIS_URL: cluster.url },
  };
}

/** One weir for each variant and checkout of the case. */
async function startWeirs(
  bench: BenchCase,
  choice: TargetChoice,
  stops: (() => Promise<unknown>)[],
): Promise<BenchTarget[]> {
  const { transports, checkouts } = choice;
  const targets: BenchTarget[] = [];
  const folders = checkouts.length > 0 ? checkouts : [{ name: '', folder: repositoryRoot }];
  for (const { store, transport, tls, limit } of variantsOf(bench, transports)) {
    for (const { name, folder } of folders) {
      const env: NodeJS.ProcessEnv = { ...(tls && tlsSettings(stops)), MEMORY_MAX_BUCKETS: '4000000' };
      if (transport !== undefined) env['GRPC_TRANSPORT'] = transport;
      if (limit === 'window, all sinks') Object.assign(env, await sinkSettings(stops));
      const started = await startStore(store, stops);
      Object.assign(env, started.env);
      const policy = policyText(bench.rules, bench.verdict, limit);
      const weir = await startWeir({ policy, env, main: join(folder, 'build/src/main.js') });
      stops.push(() => weir.stop('SIGKILL'));
      const parts = ['weir', store, ...(transport === undefined ? [] : [transport])];
      if (tls) parts.push('TLS');
      if (bench.limits.length > 1) parts.push(limit);
      if (name !== '') parts.push(name);
      targets.push({
        ...PLAIN,
        name: parts.join(', '),
        pid: weir.process.pid,
        port: weir.grpcPort,
        redisPids: started.redisPids,
        tls,
      });
    }
  }
  return targets;
}

/** Starts what a case needs. */
export async function startTargets(bench: BenchCase, choice: TargetChoice): Promise<CaseTargets> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const one of stops.splice(0).reverse()) await one();
  };
  try {
    let all: BenchTarget[] = choice.checkouts.length > 0 ? [] : [await startYardstick(stops)];
    if (choice.given === undefined) all.push(...(await startWeirs(bench, choice, stops)));
    else all.push({ ...PLAIN, ...choice.given, name: `${choice.given.host}:${choice.given.port}` });
    if (bench.envoy) {
      const proxied: BenchTarget[] = [];
      for (const target of all) proxied.push(await behindEnvoy(target, stops));
      all = proxied;
    }
    return { all, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
