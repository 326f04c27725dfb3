import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { QueryClients } from '../../../../../src/storage/redis/connection/client/query-client.js';

let server: Server | undefined;
const clients = new QueryClients();

afterEach(async () => {
  await new Promise((resolve) => server?.close(resolve));
});

/** Returns the result of a query to a server that runs `answer` for each chunk. */
async function asked(answer: (socket: Socket, chunk: string) => void): Promise<string> {
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => answer(socket, chunk.toString()));
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return clients.ask(
    { endpoint: { host: '127.0.0.1', port }, tls: undefined, login: {} },
    async (client) => String(await client.call('CLUSTER', 'SLOTS')),
    (_, result) => result,
  );
}

test('a reply is read', async () => {
  expect(await asked((socket, chunk) => socket.write('+fine\r\n'.repeat(chunk.split('*').length - 1)))).toBe(
    'fine',
  );
});

test('an endless reply ends the connection, and is not kept in memory', async () => {
  const flood = (socket: Socket): void => {
    if (socket.destroyed) return;
    if (socket.write(Buffer.alloc(65_536, 'a'))) setImmediate(flood, socket);
    else socket.once('drain', () => flood(socket));
  };
  let began = false;
  const result = asked((socket) => {
    if (began) return;
    began = true;
    socket.write('$4000000000\r\n');
    flood(socket);
  });
  await expect(result).rejects.toThrow('the server sent more data than requested');
});
