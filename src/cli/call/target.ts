import { shownAddress } from '../../runtime/shown-address.js';
import { readSettings } from '../../server/settings/read-settings.js';
import type { Io } from '../io.js';
import { isAddress, loopbackAddress } from './address.js';
import { type DebugServer, ownDebugServer } from './debug-server.js';

/** Options of commands that call a server over TLS, for `parseArgs` of node:util. */
const TLS_OPTIONS = {
  tls: { type: 'boolean', default: false },
  ca: { type: 'string' },
  cert: { type: 'string' },
  key: { type: 'string' },
} as const;

/** How to connect to a server: in clear text, or over TLS with PEM files. */
interface ChannelOptions {
  readonly tls: boolean;
  /** File with the CAs of the server's certificate; undefined trusts the CAs of Node.js. */
  readonly ca: string | undefined;
  /** Files with a client certificate and its key, for servers that require one. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/**
 * Converts the values of {@link TLS_OPTIONS}. A file implies TLS. Returns an error message if only one of `--cert` and
 * `--key` is set.
 */
function readTlsOptions(values: {
  readonly tls?: boolean;
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}): ChannelOptions | string {
  const { ca, cert, key } = values;
  if ((cert === undefined) !== (key === undefined)) return '--cert and --key must be set together';
  const tls = values.tls === true || ca !== undefined || cert !== undefined;
  return { tls, ca, cert, key };
}

/** Options of all commands that call a gRPC server, for `parseArgs` of node:util. */
export const TARGET_OPTIONS = { address: { type: 'string' }, ...TLS_OPTIONS } as const;

/** Address of a gRPC server, and how to call it. */
export interface ServerTarget {
  /** `host:port` of a gRPC listener, or `unix:<path>`. */
  readonly address: string;
  readonly channel: ChannelOptions;
  /** Whether the environment names the server. It then runs on this machine, and any certificate is accepted. */
  readonly own: boolean;
  /** Debug port of the environment's server. */
  readonly debug?: DebugServer | undefined;
  /**
   * `host:port` of the HTTP port, which also reports health. Set if the environment's server requires a client
   * certificate and `--cert` is missing.
   */
  readonly addressWithoutCertificate?: string;
}

export type TargetResult =
  | { readonly kind: 'target'; readonly target: ServerTarget }
  /** The command line is invalid. */
  | { readonly kind: 'usage'; readonly message: string }
  /** The environment is invalid; one message for each reason. */
  | { readonly kind: 'failed'; readonly messages: readonly string[] };

/**
 * Returns the server in `--address`, or else the server of this environment: GRPC_UDS, or GRPC_HOST and GRPC_PORT. A
 * wildcard address is called on loopback. GRPC_SERVER_USE_TLS selects TLS.
 */
export function readTarget(
  values: Parameters<typeof readTlsOptions>[0] & { readonly address?: string | undefined },
  environment: Io['environment'],
): TargetResult {
  const { address } = values;
  const channel = readTlsOptions(values);
  if (typeof channel === 'string') return { kind: 'usage', message: channel };
  if (address === undefined) return environmentTarget(channel, environment);
  if (isAddress(address)) return { kind: 'target', target: { address, channel, own: false } };
  // A missing port is the most common mistake.
  const hint = /^(?:[a-z\d.-]+|\[[\da-f:.]+\])$/i.test(address) ? `; write ${address}:8081` : '';
  return {
    kind: 'usage',
    message:
      `--address ${JSON.stringify(shownAddress(address))} is not of the form host:port (IPv6 addresses in brackets, ` +
      `as in [::1]:8081) or unix:<path>${hint}`,
  };
}

function environmentTarget(channel: ChannelOptions, environment: Io['environment']): TargetResult {
  const read = readSettings(environment);
  if (!read.ok) {
    const messages = [
      ...read.errors,
      "without --address, weir reads the server's address from environment variables; correct these " +
        'variables, or specify the server with --address',
    ];
    return { kind: 'failed', messages };
  }
  const { grpcHost, grpcPort, grpcUds, grpcServerUseTls, grpcClientTlsCaCert, host, port } = read.settings;
  if (grpcUds === '' && grpcPort === 0) {
    return {
      kind: 'failed',
      messages: [
        'GRPC_PORT is 0, so the server chose a free port; find the port in its log line "weir serves", ' +
          'and specify it with --address',
      ],
    };
  }
  const needsCertificate = grpcServerUseTls && grpcClientTlsCaCert !== '' && channel.cert === undefined;
  const target: ServerTarget = {
    address: grpcUds === '' ? loopbackAddress(grpcHost, grpcPort) : `unix:${grpcUds}`,
    channel: grpcServerUseTls ? { ...channel, tls: true } : channel,
    own: true,
    debug: ownDebugServer(read.settings),
    ...(needsCertificate && { addressWithoutCertificate: loopbackAddress(host, port) }),
  };
  return { kind: 'target', target };
}
