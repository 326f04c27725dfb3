import { startEchoUpstream } from '../../../deploy/demo/echo-upstream.js';
import { closeLater } from '../process/close-later.js';
import { startRedis } from '../redis/redis-server.js';
import { mutualTlsSettings, type TlsFiles, writeTlsFiles } from '../tls/tls-files.js';
import { startWeir, type WeirServer } from '../weir/weir.js';
import { type EnvoyServer, startEnvoy } from './envoy.js';

export interface StackOptions {
  /** Store of the buckets. */
  readonly store?: 'memory' | 'redis';
  /** Bootstrap of Envoy; default: deploy/envoy/envoy.yaml. */
  readonly envoyFile?: string;
  /** Changes of the bootstrap's text, in addition to the addresses. */
  readonly changes?: readonly (readonly [from: string, to: string])[];
  /** Further settings of weir. */
  readonly weirEnv?: NodeJS.ProcessEnv;
  /** Text of a policy that replaces the bundled one. */
  readonly policy?: string;
  /** Connection from Envoy to weir; default: clear text. */
  readonly security?: Security;
}

/** Kinds of connections from Envoy to weir. With mTLS, each side checks the other's certificate, including its name. */
export const SECURITIES = ['clear text', 'mTLS'] as const;
export type Security = (typeof SECURITIES)[number];

/** The API that clients see, with everything that it depends on, on loopback. */
export interface Stack {
  readonly envoy: EnvoyServer;
  readonly weir: WeirServer;
  /** Settings of weir, to start another one in its place. */
  readonly weirEnv: NodeJS.ProcessEnv;
  readonly upstreamPort: number;
}

/**
 * A longer timeout than in the shipped files. Envoy ignores a late decision and lets the request through, so a busy
 * machine could otherwise change the counts of a test. The same applies to a late answer of Redis.
 */
export const LONG_TIMEOUTS: readonly (readonly [string, string])[] = [['timeout: 0.25s', 'timeout: 10s']];

/** Changes the weir cluster of a bootstrap to TLS with a client certificate. */
function mutualTls(files: TlsFiles): readonly [from: string, to: string] {
  const cluster = '    - name: weir\n';
  const context = {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
    sni: 'localhost',
    common_tls_context: {
      // Envoy offers HTTP/2 in the handshake only if it is set here, and weir does not support another protocol.
      alpn_protocols: ['h2'],
      tls_certificates: [
        { certificate_chain: { filename: files.clientCert }, private_key: { filename: files.clientKey } },
      ],
      validation_context: {
        trusted_ca: { filename: files.ca },
        match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'localhost' } }],
      },
    },
  };
  // JSON is YAML.
  const socket = JSON.stringify({ name: 'envoy.transport_sockets.tls', typed_config: context });
  return [cluster, `${cluster}      transport_socket: ${socket}\n`];
}

/** Starts the upstream of the demo, which echoes requests, on a free port. */
export async function startUpstream(): Promise<Awaited<ReturnType<typeof startEchoUpstream>>> {
  const upstream = await startEchoUpstream(0);
  return closeLater(upstream, ({ server }) => {
    server.closeAllConnections();
    server.close();
  });
}

/** Starts the upstream, Redis (if required), weir and Envoy, in this order. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const upstream = await startUpstream();
  const env: NodeJS.ProcessEnv = { ...options.weirEnv };
  const changes = [...(options.changes ?? LONG_TIMEOUTS)];
  if (options.security === 'mTLS') {
    const files = writeTlsFiles();
    Object.assign(env, mutualTlsSettings(files));
    changes.push(mutualTls(files));
  }
  if (options.store === 'redis') {
    env['REDIS_URL'] = `redis://127.0.0.1:${(await startRedis()).port}`;
    env['REDIS_TIMEOUT'] ??= '10s';
  }
  const weir = await startWeir({ env, ...(options.policy !== undefined && { policy: options.policy }) });
  const envoy = await startEnvoy({
    file: options.envoyFile ?? 'deploy/envoy/envoy.yaml',
    weirPort: weir.grpcPort,
    upstreamPort: upstream.port,
    changes,
  });
  return { envoy, weir, weirEnv: env, upstreamPort: upstream.port };
}
