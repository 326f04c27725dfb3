import { credentials, makeGenericClientConstructor } from '@grpc/grpc-js';
import { service } from 'grpc-health-check';
import { readSettings } from '../server/settings.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io } from './io.js';

const TIMEOUT_MS = 2000;

interface HealthClient {
  check(
    request: { service: string },
    options: { deadline: number },
    callback: (error: { details: string } | null, response?: { status: string }) => void,
  ): void;
  close(): void;
}

/** `host:port`, with brackets where the host is an IPv6 address. */
export function formatAddress(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The address at which this environment's own server can be asked. */
function ownAddress(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '') return formatAddress('127.0.0.1', port);
  return formatAddress(host === '::' ? '::1' : host, port);
}

/** `weir health`: exit 0 when the server says SERVING. */
export async function runHealth(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('health', args, { address: { type: 'string' } });
  if (typeof parsed === 'string' || parsed.positionals.length > 0) {
    io.err(typeof parsed === 'string' ? parsed : 'weir health: takes no arguments but --address\n');
    return EXIT.USAGE;
  }
  let { address } = parsed.values;
  if (address === undefined) {
    const read = readSettings(io.environment);
    if (!read.ok) {
      io.err(read.errors.map((error) => `weir health: ${error}\n`).join(''));
      return EXIT.FAILED;
    }
    address = ownAddress(read.settings.grpcHost, read.settings.grpcPort);
  }
  const Client = makeGenericClientConstructor(service, 'Health');
  const client = new Client(address, credentials.createInsecure()) as unknown as HealthClient;
  try {
    const status = await new Promise<string>((resolve) => {
      client.check({ service: '' }, { deadline: Date.now() + TIMEOUT_MS }, (error, response) =>
        resolve(error === null ? (response?.status ?? 'UNKNOWN') : `no answer: ${error.details}`),
      );
    });
    if (status === 'SERVING') {
      io.out('SERVING\n');
      return EXIT.OK;
    }
    io.err(`weir health: ${address}: ${status}\n`);
    return EXIT.FAILED;
  } finally {
    client.close();
  }
}
