import { join } from 'node:path';
import { startEnvoy } from '../../support/envoy/envoy.js';
import { closeLater } from '../../support/process/close-later.js';
import { freePorts } from '../../support/process/free-port.js';
import { startProcess } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { startCluster } from '../../support/redis/cluster.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { TENANT } from './call-template.js';
import type { BenchCase, BenchStore } from './cases.js';
import { metricsSinkSettings } from './metrics-sinks.js';
import { startPingPong } from './ping-pong.js';
import { type Limit, messageOf, planTable, policyText } from './policy.js';

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
  /** The weir processes that share the load, and the first of which has `port` and `pid`; empty for other servers. */
  readonly replicas: readonly { readonly port: number; readonly pid: number; readonly httpPort: number }[];
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

const TARGET_DEFAULTS = { host: '127.0.0.1', redisPids: [], tls: false, envoyPort: undefined, replicas: [] };

/** Starts the baseline, an empty handler on @grpc/grpc-js without TLS. */
async function startBaseline(): Promise<BenchTarget> {
  const started = startProcess(process.execPath, [join(__dirname, '../empty-server.js')]);
  closeLater(started, () => started.stop('SIGKILL'));
  const line = await started.waitForLine(/^\d+$/);
  return { ...TARGET_DEFAULTS, name: 'empty grpc-js handler', pid: started.pid, port: Number(line) };
}

/** Creates a certificate for a server on 127.0.0.1. Returns the variables with its paths. */
function tlsSettings(): NodeJS.ProcessEnv {
  const folder = new TempDir();
  const { cert, key } = new CertificateAuthority().issue('IP:127.0.0.1');
  return {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: folder.write('cert.pem', cert),
    GRPC_SERVER_TLS_KEY: folder.write('key.pem', key),
  };
}

/** Name of the server that {@link PING_PONG} is compared with. */
export const IN_MEMORY = 'weir, memory';
/** A server that sends the same bytes without a decision. */
export const PING_PONG = 'ping-pong of the same bytes';

/** Returns whether all calls of a case get the same answer from weir in memory, so that a ping-pong can send it. */
function comparesPingPong({ load, generator, tls, envoy, ends }: BenchCase): boolean {
  return load === 'saturation' && generator === 'h2load' && !tls && !envoy && !ends;
}

async function startPingPongFor(bench: BenchCase, memory: BenchTarget): Promise<BenchTarget> {
  const message = messageOf(bench.descriptors, bench.rules, TENANT);
  const { started, port } = await startPingPong(memory.port, message);
  return { ...TARGET_DEFAULTS, name: PING_PONG, pid: started.pid, port };
}

async function startEnvoyFor(target: BenchTarget): Promise<BenchTarget> {
  const [upstreamPort = 0] = await freePorts(1);
  const envoy = await startEnvoy({
    file: 'test/bench/load/envoy.yaml',
    weirPort: target.port,
    upstreamPort,
    changes: [['address: 127.0.0.1, port_value: 9191', `address: 127.0.0.1, port_value: ${upstreamPort}`]],
    untilWeirServes: false,
  });
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
        bench.limits
          // Buckets in memory have no leases.
          .filter((limit) => !limit.startsWith('lease') || store !== 'memory')
          .map((limit) => ({ store, transport, tls, limit })),
      ),
    ),
  );
}

/** Number of nodes of a Redis Cluster. */
const MASTERS = 3;

/** Starts the store of a weir server. Resolves with its process IDs and the variables for weir. */
async function startStore(
  store: BenchStore,
): Promise<{ readonly redisPids: readonly number[]; readonly env: NodeJS.ProcessEnv }> {
  if (store === 'memory') return { redisPids: [], env: {} };
  if (store === 'Redis') {
    const redis = await startRedis();
    return { redisPids: [redis.pid], env: { REDIS_URL: `127.0.0.1:${redis.port}` } };
  }
  const cluster = await startCluster({ masters: MASTERS });
  return {
    redisPids: cluster.nodes.map(({ server }) => server.pid),
    env: { REDIS_TYPE: 'CLUSTER', REDIS_URL: cluster.url },
  };
}

/** Starts a weir server for each configuration and checkout of the case. */
async function startWeirs(bench: BenchCase, options: TargetOptions): Promise<BenchTarget[]> {
  const { transports, checkouts } = options;
  const targets: BenchTarget[] = [];
  const folders = checkouts.length > 0 ? checkouts : [{ name: '', folder: repositoryRoot }];
  for (const { store, transport, tls, limit } of variantsOf(bench, transports)) {
    for (const { name, folder } of folders) {
      const env: NodeJS.ProcessEnv = { ...(tls && tlsSettings()), MEMORY_MAX_BUCKETS: '4000000' };
      if (transport !== undefined) env['GRPC_TRANSPORT'] = transport;
      if (limit === 'window, all sinks') Object.assign(env, await metricsSinkSettings());
      const started = await startStore(store);
      Object.assign(env, started.env);
      const table = limit === 'plan' ? new TempDir().write('plans.csv', planTable()) : undefined;
      const policy = policyText(bench.rules, bench.bucketKind, limit, table);
      const weirs: WeirServer[] = [];
      for (let i = 0; i < bench.replicas; i++) {
        const weir = await startWeir({ policy, env, main: join(folder, 'build/src/main.js') });
        weirs.push(closeLater(weir, () => weir.stop('SIGKILL')));
      }
      const replicas = weirs.map(({ grpcPort, httpPort, process: { pid } }) => ({
        port: grpcPort,
        pid,
        httpPort,
      }));
      const parts = ['weir', store, ...(transport === undefined ? [] : [transport])];
      if (tls) parts.push('TLS');
      if (bench.limits.length > 1) parts.push(limit);
      if (name !== '') parts.push(name);
      targets.push({
        ...TARGET_DEFAULTS,
        name: parts.join(', '),
        ...(replicas[0] as (typeof replicas)[number]),
        replicas,
        redisPids: started.redisPids,
        tls,
      });
    }
  }
  return targets;
}

/**
 * Starts all servers of a case. The first one is the baseline, unless checkouts are compared. {@link closeAll} stops
 * them.
 */
export async function startTargets(bench: BenchCase, options: TargetOptions): Promise<BenchTarget[]> {
  const all: BenchTarget[] = options.checkouts.length > 0 ? [] : [await startBaseline()];
  if (options.external === undefined) all.push(...(await startWeirs(bench, options)));
  else
    all.push({
      ...TARGET_DEFAULTS,
      ...options.external,
      name: `${options.external.host}:${options.external.port}`,
    });
  const memory = all.find(({ name }) => name === IN_MEMORY);
  if (memory !== undefined && comparesPingPong(bench)) all.push(await startPingPongFor(bench, memory));
  if (!bench.envoy) return all;
  const proxied: BenchTarget[] = [];
  for (const target of all) proxied.push(await startEnvoyFor(target));
  return proxied;
}
