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
import { metricsSinkSettings } from './metrics-sinks.js';
import { type Limit, planTable, policyText } from './policy.js';

/** A server under load. */
export interface BenchTarget {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  /** Process IDs of all Redis nodes; empty without Redis. */
  readonly redisPids: readonly number[];
  readonly tls: boolean;
  /** Port of an Envoy that calls this server. If it is set, the load goes to this port. */
  readonly envoyPort: number | undefined;
}

/** A server that is already running (`--target`). */
export interface ExternalTarget {
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  readonly redisPids: readonly number[];
}

/** Selects the servers of a case. */
export interface TargetOptions {
  /** Values of GRPC_TRANSPORT. undefined selects weir's default. */
  readonly transports: readonly (string | undefined)[];
  readonly external: ExternalTarget | undefined;
  /** Checkouts of weir to compare, with their names in the table. If the list is empty, this checkout is measured. */
  readonly checkouts: readonly { readonly name: string; readonly folder: string }[];
}

/** Servers of a case. The first server is the baseline, unless checkouts are compared. */
export interface CaseTargets {
  readonly all: readonly BenchTarget[];
  stop(): Promise<void>;
}

const TARGET_DEFAULTS = { host: '127.0.0.1', redisPids: [], tls: false, envoyPort: undefined };

/** Starts the baseline, an empty handler on @grpc/grpc-js without TLS. */
async function startBaseline(cleanups: (() => Promise<unknown>)[]): Promise<BenchTarget> {
  const started: StartedProcess = startProcess(process.execPath, [join(__dirname, '../empty-server.js')]);
  cleanups.push(() => started.stop('SIGKILL'));
  const line = await started.waitForLine(/^\d+$/);
  return { ...TARGET_DEFAULTS, name: 'empty grpc-js handler', pid: started.pid, port: Number(line) };
}

/** Creates a certificate for a server on 127.0.0.1. Returns the variables with its paths. */
function tlsSettings(cleanups: (() => Promise<unknown>)[]): NodeJS.ProcessEnv {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-tls-'));
  cleanups.push(async () => rmSync(folder, { recursive: true, force: true }));
  const { cert, key } = new CertificateAuthority().issue('IP:127.0.0.1');
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key);
  return {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: join(folder, 'cert.pem'),
    GRPC_SERVER_TLS_KEY: join(folder, 'key.pem'),
  };
}

/** Writes the table of plans. Returns its path. */
function writePlanTable(cleanups: (() => Promise<unknown>)[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-plans-'));
  cleanups.push(async () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'plans.csv');
  writeFileSync(file, planTable());
  return file;
}

async function startEnvoyFor(
  target: BenchTarget,
  cleanups: (() => Promise<unknown>)[],
): Promise<BenchTarget> {
  const [upstreamPort = 0] = await freePorts(1);
  const envoy = await startEnvoy({
    file: 'test/bench/load/envoy.yaml',
    weirPort: target.port,
    upstreamPort,
    changes: [['address: 127.0.0.1, port_value: 9191', `address: 127.0.0.1, port_value: ${upstreamPort}`]],
    untilWeirServes: false,
  });
  cleanups.push(() => envoy.stop());
  return { ...target, envoyPort: envoy.port };
}

/** Configuration of a weir server in a case. */
interface Variant {
  readonly store: BenchStore;
  readonly transport: string | undefined;
  readonly tls: boolean;
  readonly limit: Limit;
}

/** Returns the configurations of a case. A case with TLS also includes the same server without TLS. */
function variantsOf(bench: BenchCase, transports: TargetOptions['transports']): Variant[] {
  return bench.stores.flatMap((store) =>
    transports.flatMap((transport) =>
      (bench.tls ? [false, true] : [false]).flatMap((tls) =>
        bench.limits.map((limit) => ({ store, transport, tls, limit })),
      ),
    ),
  );
}

/** Number of nodes of a Redis Cluster. */
const MASTERS = 3;

/** Starts the store of a weir server. Resolves with its process IDs and the variables for weir. */
async function startStore(
  store: BenchStore,
  cleanups: (() => Promise<unknown>)[],
): Promise<{ readonly redisPids: readonly number[]; readonly env: NodeJS.ProcessEnv }> {
  if (store === 'memory') return { redisPids: [], env: {} };
  if (store === 'Redis') {
    const redis = await startRedis();
    cleanups.push(() => redis.stop());
    return { redisPids: [redis.pid], env: { REDIS_URL: `127.0.0.1:${redis.port}` } };
  }
  const cluster = await startCluster({ masters: MASTERS });
  cleanups.push(() => cluster.stop());
  return {
    redisPids: cluster.nodes.map(({ server }) => server.pid),
    env: { REDIS_TYPE: 'CLUSTER', REDIS_URL: cluster.url },
  };
}

/** Starts a weir server for each configuration and checkout of the case. */
async function startWeirs(
  bench: BenchCase,
  options: TargetOptions,
  cleanups: (() => Promise<unknown>)[],
): Promise<BenchTarget[]> {
  const { transports, checkouts } = options;
  const targets: BenchTarget[] = [];
  const folders = checkouts.length > 0 ? checkouts : [{ name: '', folder: repositoryRoot }];
  for (const { store, transport, tls, limit } of variantsOf(bench, transports)) {
    for (const { name, folder } of folders) {
      const env: NodeJS.ProcessEnv = { ...(tls && tlsSettings(cleanups)), MEMORY_MAX_BUCKETS: '4000000' };
      if (transport !== undefined) env['GRPC_TRANSPORT'] = transport;
      if (limit === 'window, all sinks') Object.assign(env, await metricsSinkSettings(cleanups));
      const started = await startStore(store, cleanups);
      Object.assign(env, started.env);
      const table = limit === 'plan' ? writePlanTable(cleanups) : undefined;
      const policy = policyText(bench.rules, bench.bucketKind, limit, table);
      const weir = await startWeir({ policy, env, main: join(folder, 'build/src/main.js') });
      cleanups.push(() => weir.stop('SIGKILL'));
      const parts = ['weir', store, ...(transport === undefined ? [] : [transport])];
      if (tls) parts.push('TLS');
      if (bench.limits.length > 1) parts.push(limit);
      if (name !== '') parts.push(name);
      targets.push({
        ...TARGET_DEFAULTS,
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

/** Starts all servers of a case. */
export async function startTargets(bench: BenchCase, options: TargetOptions): Promise<CaseTargets> {
  const cleanups: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const one of cleanups.splice(0).reverse()) await one();
  };
  try {
    let all: BenchTarget[] = options.checkouts.length > 0 ? [] : [await startBaseline(cleanups)];
    if (options.external === undefined) all.push(...(await startWeirs(bench, options, cleanups)));
    else
      all.push({
        ...TARGET_DEFAULTS,
        ...options.external,
        name: `${options.external.host}:${options.external.port}`,
      });
    if (bench.envoy) {
      const proxied: BenchTarget[] = [];
      for (const target of all) proxied.push(await startEnvoyFor(target, cleanups));
      all = proxied;
    }
    return { all, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
