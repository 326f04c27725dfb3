import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import { assetPath } from '../../../src/runtime/assets.js';
import { closeLater } from '../process/close-later.js';
import { httpRequest } from '../process/http-client.js';
import { type StartedProcess, startProcess } from '../process/processes.js';
import { toolPath } from '../process/tools.js';

/** A DiscoveryRequest that the server received. */
export interface XdsRequest {
  /** Number of the stream, starting at 1. */
  readonly stream: number;
  readonly nodeId: string;
  readonly nodeMetadata: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly typeUrl: string;
  readonly resourceNames: readonly string[] | null;
  readonly version: string;
  readonly nonce: string;
  /** Absent in an ACK. */
  readonly error?: string;
}

/**
 * A RateLimitConfig: as protobuf JSON, which the server encodes, or as bytes, for fields that the server does not know.
 */
export type XdsResource = { readonly json: object } | { readonly bytes: Buffer };

export interface XdsServerOptions {
  /** Port; 0 or undefined: a free port. */
  readonly port?: number;
  /** PEM files. With `clientCa`, the server requires a certificate of that issuer. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string };
}

/** A real management server based on go-control-plane (xds-server/main.go). */
export interface XdsServer {
  readonly port: number;
  readonly process: StartedProcess;
  setSnapshot(version: string, resources: readonly XdsResource[], node?: string): Promise<void>;
  /** All requests, acknowledgements and rejections so far. */
  requests(): Promise<readonly XdsRequest[]>;
  stop(): Promise<unknown>;
}

export async function startXdsServer({ port = 0, tls }: XdsServerOptions = {}): Promise<XdsServer> {
  const started = startProcess(toolPath('xds-server'), [
    `-port=${port}`,
    ...(tls === undefined ? [] : [`-cert=${tls.cert}`, `-key=${tls.key}`]),
    ...(tls?.clientCa === undefined ? [] : [`-client-ca=${tls.clientCa}`]),
  ]);
  closeLater(started, () => started.stop('SIGKILL'));
  const line = await started.waitForLine(/^listening /);
  const [xdsPort = 0, controlPort = 0] = line.split(' ').slice(1).map(Number);
  return {
    port: xdsPort,
    process: started,
    async setSnapshot(version, resources, node = 'default') {
      const encoded = resources.map((one) => ('json' in one ? one : { bytes: one.bytes.toString('base64') }));
      await control(controlPort, 'PUT', '/snapshot', JSON.stringify({ node, version, resources: encoded }));
    },
    requests: async () => JSON.parse(await control(controlPort, 'GET', '/requests')) as XdsRequest[],
    stop: () => started.stop('SIGKILL'),
  };
}

async function control(port: number, method: string, path: string, body = ''): Promise<string> {
  const answer = await httpRequest(port, path, { method, body });
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
  return answer.body;
}

const definition = loadSync('ratelimit/config/ratelimit/v3/rls_conf.proto', {
  includeDirs: [assetPath('proto')],
  keepCase: true,
});

/** Returns a RateLimitConfig with weir's additional fields, named as in proto/, as bytes. */
export function encodeConfig(config: object): { readonly bytes: Buffer } {
  const type = definition['ratelimit.config.ratelimit.v3.RateLimitConfig'] as MessageTypeDefinition<
    object,
    object
  >;
  return { bytes: type.serialize(config) };
}
