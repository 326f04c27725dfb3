/*
 * A server under test for connectconformance: `node server.js PROTO_FOLDER TRANSPORT`. It reads the required kind of
 * server from stdin, writes its address to stdout, and serves until SIGTERM.
 */

import { createGrpcServer } from '../../../src/server/grpc-service.js';
import { SERVER_BOUNDS } from '../../support/grpc/server-bounds.js';
import { STACKS } from '../../support/weir/stacks.js';
import { ConformanceMessages, readFramed } from './messages.js';
import { conformanceMethods } from './service.js';

const DEFAULT_RECEIVE_LIMIT = 4 * 1024 * 1024;

async function serve(protoFolder: string, name: string): Promise<void> {
  const transport = STACKS.find((one) => one === name);
  if (transport === undefined) throw new Error(`no transport ${name}`);
  const messages = new ConformanceMessages(protoFolder, transport === 'grpc-js');
  const wanted = messages.decodeRequest(await readFramed(process.stdin));
  const cert = wanted.server_creds?.cert ?? Buffer.alloc(0);
  const material = {
    cert: cert.toString(),
    key: wanted.server_creds?.key.toString() ?? '',
    clientCa: wanted.client_tls_cert.length > 0 ? wanted.client_tls_cert.toString() : undefined,
  };
  const maxBytes = wanted.message_receive_limit || DEFAULT_RECEIVE_LIMIT;
  const server = createGrpcServer(transport, {
    tls: wanted.use_tls ? { material, clientSan: undefined } : undefined,
    ...SERVER_BOUNDS,
    maxReceiveMessageBytes: maxBytes,
    keptMessageBytes: maxBytes + 1,
    maxConcurrentStreams: 1000,
    maxHeaderListBytes: 16_384,
    maxConnectionAgeMs: Number.POSITIVE_INFINITY,
    maxConnectionAgeGraceMs: Number.POSITIVE_INFINITY,
    keepAliveIntervalMs: Number.POSITIVE_INFINITY,
    keepAliveTimeoutMs: 20_000,
    monotonicMicros: () => performance.now() * 1000,
    onError: (error) => console.error(error),
    onBadConnection: (message) => console.error(message),
  });
  for (const method of conformanceMethods(messages)) server.addGenericMethod(method);
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  process.once('SIGTERM', () => void server.close().then(() => process.exit(0)));
  process.stdout.write(
    messages.encodeResponse({
      host: '127.0.0.1',
      port,
      pem_cert: wanted.use_tls ? cert : Buffer.alloc(0),
    }),
  );
}

const [, , protoFolder = '', name = ''] = process.argv;
serve(protoFolder, name).catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
