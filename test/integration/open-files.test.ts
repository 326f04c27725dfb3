import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { RawClient } from '../support/grpc/grpc-client.js';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { startProcess } from '../support/process/processes.js';
import { waitFor } from '../support/process/wait-for.js';
import { WEIR_MAIN } from '../support/weir/weir.js';

const HEALTH = '/grpc.health.v1.Health/Check';
const FILES = 64;

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

test('a server that runs out of open files refuses connections, and later accepts connections again', async () => {
  const [grpcPort = 0, httpPort = 0, debugPort = 0] = await freePorts(3);
  const env = {
    GRPC_PORT: String(grpcPort),
    PORT: String(httpPort),
    DEBUG_PORT: String(debugPort),
    GRPC_TRANSPORT: 'h2',
  };
  const weir = startProcess(
    'sh',
    ['-c', `ulimit -n ${FILES} && exec "$0" "$@"`, process.execPath, WEIR_MAIN, 'serve'],
    {
      bareEnvironment: true,
      env,
    },
  );
  await waitFor('weir', async () => (await httpRequest(httpPort, '/healthcheck')).status === 200);
  const before = new RawClient(`127.0.0.1:${grpcPort}`);
  expect((await before.unary(HEALTH, Buffer.alloc(0))).code).toBe(0);

  let refused = 0;
  for (let i = 0; i < 2 * FILES; i++) {
    const socket = connect(grpcPort, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('close', () => refused++);
    sockets.push(socket);
  }
  await waitFor('refusals', () => refused > 0);
  // The existing connection is served meanwhile.
  expect((await before.unary(HEALTH, Buffer.alloc(0))).code).toBe(0);
  before.close();

  for (const socket of sockets.splice(0)) socket.destroy();
  const after = new RawClient(`127.0.0.1:${grpcPort}`);
  await waitFor('an answer', async () => (await after.unary(HEALTH, Buffer.alloc(0))).code === 0);
  after.close();
  expect(weir.isRunning()).toBe(true);
});
