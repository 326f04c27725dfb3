import { shownAddress } from '../../runtime/shown-address.js';
import { type Io, usageError } from '../io.js';
import { isAddress, loopbackAddress } from './address.js';
import { type DebugServer, freePortError, ownDebugServer, readServerSettings } from './debug-server.js';

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
 * Converts the values of {@link TLS_OPTIONS}. A file implies TLS.
 */
function readTlsOptions(
  command: string,
  values: Partial<Record<'ca' | 'cert' | 'key', string | undefined>> & { readonly tls?: boolean },
): ChannelOptions {
  const { ca, cert, key } = values;
  if ((cert === undefined) !== (key === undefined))
    throw usageError(command, '--cert and --key must be set together');
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

/**
 * Returns the server in `--address`, or else the server of this environment: GRPC_UDS, or GRPC_HOST and GRPC_PORT. A
 * wildcard address is called on loopback. GRPC_SERVER_USE_TLS selects TLS.
 */
export function readTarget(
  command: string,
  values: Parameters<typeof readTlsOptions>[1] & { readonly address?: string | undefined },
  environment: Io['environment'],
): ServerTarget {
  const { address } = values;
  const channel = readTlsOptions(command, values);
  if (address === undefined) return environmentTarget(channel, environment);
  if (isAddress(address)) return { address, channel, own: false };
  // A missing port is the most common mistake.
  const hint = /^(?:[a-z\d.-]+|\[[\da-f:.]+\])$/i.test(address) ? `; write ${address}:8081` : '';
  throw usageError(
    command,
    `--address ${JSON.stringify(shownAddress(address))} is not of the form host:port (IPv6 addresses in brackets, as ` +
      `in [::1]:8081) or unix:<path>${hint}`,
  );
}

function environmentTarget(channel: ChannelOptions, environment: Io['environment']): ServerTarget {
  const settings = readServerSettings(environment);
  const { grpcHost, grpcPort, grpcUds, grpcServerUseTls, grpcClientTlsCaCert, host, port } = settings;
  if (grpcUds === '' && grpcPort === 0) throw freePortError('GRPC_PORT');
  const needsCertificate = grpcServerUseTls && grpcClientTlsCaCert !== '' && channel.cert === undefined;
  return {
    address: grpcUds === '' ? loopbackAddress(grpcHost, grpcPort) : `unix:${grpcUds}`,
    channel: grpcServerUseTls ? { ...channel, tls: true } : channel,
    own: true,
    debug: ownDebugServer(settings),
    ...(needsCertificate && { addressWithoutCertificate: loopbackAddress(host, port) }),
  };
}
