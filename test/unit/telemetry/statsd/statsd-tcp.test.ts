import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { StatsdTcp } from '../../../../src/telemetry/statsd/statsd-tcp.js';
import { waitFor } from '../../../support/process/wait-for.js';

/** About 4 MB of lines, which are many batches. */
const LINES = 80_000;
const nameOf = (i: number): string => `a.name.that.is.about.as.long.as.they.are.${i}`;

let server: Server;
let connections: Socket[];
let received: string;
let sink: StatsdTcp;
/** Whether the collector closes a new connection after its first bytes. */
let closes: boolean;

beforeEach(async () => {
  connections = [];
  received = '';
  closes = false;
  server = createServer((socket) => {
    connections.push(socket);
    socket.on('error', () => {});
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      received += text;
      if (closes && connections[0] === socket) socket.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  sink = new StatsdTcp({ host: '127.0.0.1', port, tags: [], log: () => {}, closeMs: 60_000 });
});

afterEach(async () => {
  await sink.close();
  for (const socket of connections) socket.destroy();
  server.close();
  await once(server, 'close');
});

const told = (from: number, to: number): void => {
  for (let i = from; i < to; i++) sink.counter(nameOf(i), 1);
};

test('megabytes of lines arrive in order, and lines wait for a flush', async () => {
  told(0, 1);
  sink.flush();
  await waitFor('the first line', () => received !== '');
  told(1, LINES);
  sink.flush();
  told(LINES, LINES + 10_000);
  await waitFor('lines', () => received.includes(`${nameOf(LINES - 1)}:1|c\n`));
  expect(received.split('\n')).toEqual([...Array.from({ length: LINES }, (_, i) => `${nameOf(i)}:1|c`), '']);
  sink.flush();
  await waitFor('lines', () => received.includes(`${nameOf(LINES + 9999)}:1|c\n`));
  expect(received.split('\n')).toHaveLength(LINES + 10_001);
  expect(sink.dropped).toBe(0);
});

test('a collector that disconnects after the first lines gets the last lines later', async () => {
  closes = true;
  told(0, LINES);
  sink.flush();
  await waitFor('lines', () => received.includes(`${nameOf(LINES - 1)}:1|c\n`));
  expect(connections.length).toBeGreaterThan(1);
  expect(received.split('\n').length).toBeGreaterThan(LINES / 2);
});

test('waiting lines are sent before the end', async () => {
  await waitFor('a connection', () => connections.length > 0);
  told(0, LINES);
  await sink.close();
  await waitFor('lines', () => received.includes(`${nameOf(LINES - 1)}:1|c\n`));
  expect(received.split('\n')).toHaveLength(LINES + 1);
});
