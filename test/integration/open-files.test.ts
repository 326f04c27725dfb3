import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { RawClient } from '../support/grpc/grpc-client.js';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { type StartedProcess, startProcess } from '../support/process/processes.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { WEIR_MAIN } from '../support/weir/weir.js';

const HEALTH = '/grpc.health.v1.Health/Check';
const FILES = 64;

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

interface Started {
  readonly weir: StartedProcess;
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly debugPort: number;
}

/** Starts weir with few open files. */
async function start(settings: NodeJS.ProcessEnv): Promise<Started> {
  const [grpcPort = 0, httpPort = 0, debugPort = 0] = await freePorts(3);
  const env = {
    GRPC_PORT: String(grpcPort),
    PORT: String(httpPort),
    DEBUG_PORT: String(debugPort),
    ...settings,
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
  return { weir, grpcPort, httpPort, debugPort };
}

/** Opens connections until the server refuses some. */
async function useUp(port: number): Promise<void> {
  let refused = 0;
  for (let i = 0; i < 2 * FILES; i++) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('close', () => refused++);
    sockets.push(socket);
  }
  await waitFor('refusals', () => refused > 0);
}

test('a server that runs out of open files refuses connections, and later accepts connections again', async () => {
  const { weir, grpcPort } = await start({ GRPC_TRANSPORT: 'h2' });
  const before = new RawClient(`127.0.0.1:${grpcPort}`);
  expect((await before.unary(HEALTH, Buffer.alloc(0))).code).toBe(0);

  await useUp(grpcPort);
  // The existing connection is served meanwhile.
  expect((await before.unary(HEALTH, Buffer.alloc(0))).code).toBe(0);
  before.close();

  for (const socket of sockets.splice(0)) socket.destroy();
  const after = new RawClient(`127.0.0.1:${grpcPort}`);
  await waitFor('an answer', async () => (await after.unary(HEALTH, Buffer.alloc(0))).code === 0);
  after.close();
  expect(weir.isRunning()).toBe(true);
});

test('a primary process without open files tries again to replace a worker, and keeps running', async () => {
  const redis = await startRedis();
  const { weir, httpPort, debugPort } = await start({ REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2' });
  const servingPids = async (): Promise<readonly number[]> => {
    const { body } = await httpRequest(httpPort, '/healthcheck?detail');
    const { workers } = JSON.parse(body) as { workers: readonly { pid: number; status: string }[] };
    return workers.flatMap(({ pid, status }) => (status === 'SERVING' ? pid : []));
  };
  await waitFor('two workers', async () => (await servingPids()).length === 2);
  const [killed = 0] = await servingPids();

  await useUp(debugPort);
  process.kill(killed, 'SIGKILL');
  await weir.waitForLine(/spawn .* EMFILE.*a worker process ended; weir starts a replacement/);
  for (const socket of sockets.splice(0)) socket.destroy();

  await waitFor('two workers again', async () => (await servingPids()).length === 2);
  expect(await servingPids()).not.toContain(killed);
  expect(weir.isRunning()).toBe(true);
});
