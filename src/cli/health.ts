import { request } from 'node:http';
import { type ChannelCredentials, Client, type ServiceError } from '@grpc/grpc-js';
import {
  decodeHealthResponse,
  encodeHealthRequest,
  type HealthResponse,
} from '../codec/services/health-messages.js';
import { formatHostPort } from '../grpc/connections.js';
import { HEALTH_CHECK_PATH } from '../grpc/health.js';
import { readSettings } from '../server/settings/read-settings.js';
import { isAddress } from './address.js';
import { readArguments } from './arguments.js';
import { channelCredentials } from './channel.js';
import { EXIT, type Io } from './io.js';
import { readTlsOptions, TLS_OPTIONS } from './tls-options.js';

const TIMEOUT_MS = 2000;

/** The address at which this environment's own server can be asked. */
function ownAddress(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '') return formatHostPort('127.0.0.1', port);
  return formatHostPort(host === '::' ? '::1' : host, port);
}

/** `weir health`: exit 0 when the server says SERVING. */
export async function runHealth(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('health', args, { address: { type: 'string' }, ...TLS_OPTIONS });
  if (typeof parsed === 'string' || parsed.positionals.length > 0) {
    io.err(typeof parsed === 'string' ? parsed : 'weir health: takes options only; see weir health --help\n');
    return EXIT.USAGE;
  }
  let { address } = parsed.values;
  let channel = readTlsOptions(parsed.values);
  if (typeof channel === 'string') {
    io.err(`weir health: ${channel}\n`);
    return EXIT.USAGE;
  }
  if (address !== undefined && !isAddress(address)) {
    io.err(`weir health: --address ${JSON.stringify(address)} is neither host:port nor unix:<path>\n`);
    return EXIT.USAGE;
  }
  const asksItself = address === undefined;
  if (address === undefined) {
    const read = readSettings(io.environment);
    if (!read.ok) {
      io.err(read.errors.map((error) => `weir health: ${error}\n`).join(''));
      return EXIT.FAILED;
    }
    const { grpcHost, grpcPort, grpcUds, grpcServerUseTls, grpcClientTlsCaCert, host, port } = read.settings;
    address = grpcUds === '' ? ownAddress(grpcHost, grpcPort) : `unix:${grpcUds}`;
    if (grpcServerUseTls) channel = { ...channel, tls: true };
    // A certificate of its own issuers is what a probe does not have: HTTP says the same.
    if (grpcServerUseTls && grpcClientTlsCaCert !== '' && channel.cert === undefined) {
      const web = ownAddress(host, port);
      return tell(io, web, await askHttp(web));
    }
  }
  let credentials: ChannelCredentials;
  try {
    credentials = channelCredentials(channel, asksItself);
  } catch (error) {
    io.err(`weir health: ${(error as Error).message}\n`);
    return EXIT.FAILED;
  }
  // A name sent in the handshake may not be an address; which one it is does not matter to oneself.
  const options = asksItself ? { 'grpc.ssl_target_name_override': 'localhost' } : {};
  const client = new Client(address, credentials, options);
  try {
    const status = await new Promise<string>((resolve) => {
      client.makeUnaryRequest(
        HEALTH_CHECK_PATH,
        encodeHealthRequest,
        decodeHealthResponse,
        { service: '' },
        { deadline: Date.now() + TIMEOUT_MS },
        (error: ServiceError | null, response?: HealthResponse) =>
          resolve(error === null ? (response?.status ?? 'UNKNOWN') : `no answer: ${error.details}`),
      );
    });
    return tell(io, address, status);
  } finally {
    client.close();
  }
}

function tell(io: Io, address: string, status: string): number {
  if (status === 'SERVING') {
    io.out('SERVING\n');
    return EXIT.OK;
  }
  io.err(`weir health: ${address}: ${status}\n`);
  return EXIT.FAILED;
}

/** The status that `/healthcheck` of an HTTP port tells of, or why there is none. */
function askHttp(address: string): Promise<string> {
  return new Promise((resolve) => {
    const asked = request(`http://${address}/healthcheck`, { timeout: TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? 'SERVING' : 'NOT_SERVING');
    });
    asked.on('timeout', () => asked.destroy(new Error(`nothing came within ${TIMEOUT_MS} ms`)));
    asked.on('error', (error) => resolve(`no answer: ${error.message}`));
    asked.end();
  });
}
