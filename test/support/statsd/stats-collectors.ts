import { createSocket } from 'node:dgram';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { closeLater } from '../process/close-later.js';

/** A collector that records what statsd or dogstatsd would receive. */
export interface StatsCollector {
  readonly port: number;
  /** Complete lines, in order of arrival. */
  lines(): string[];
  /** Returns the sum of a counter's deltas: `name` is the text before the colon, `tags` the text after `|c`. */
  sum(name: string, tags?: string): number;
}

/** Returns the sum over the lines `name:delta|c` with the given tags. */
function sumOf(lines: readonly string[], name: string, tags: string): number {
  let sum = 0;
  for (const line of lines) {
    if (!line.startsWith(`${name}:`) || !line.endsWith(`|c${tags}`)) continue;
    sum += Number(line.slice(name.length + 1, line.length - tags.length - 2));
  }
  return sum;
}

/** Listens on TCP, as statsd does. */
export async function collectTcp(
  port = 0,
): Promise<StatsCollector & { cut(): void; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const whole: string[] = [];
  const server = createServer((socket) => {
    let rest = '';
    sockets.add(socket);
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      whole.push(...lines);
    });
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
  const lines = () => whole;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      cut();
    });
  closeLater(server, close);
  return {
    port: (server.address() as AddressInfo).port,
    lines,
    sum: (name, tags = '') => sumOf(lines(), name, tags),
    cut,
    close,
  };
}

/** Listens on UDP, as dogstatsd does; also returns whole packets. */
export async function collectUdp(port = 0): Promise<StatsCollector & { packets(): Buffer[] }> {
  const packets: Buffer[] = [];
  const socket = createSocket('udp4', (packet) => packets.push(packet));
  await new Promise<void>((resolve) => {
    socket.bind(port, '127.0.0.1', resolve);
  });
  closeLater(socket, () => socket.close());
  const lines = () => packets.flatMap((packet) => packet.toString().split('\n'));
  return {
    port: socket.address().port,
    lines,
    packets: () => packets,
    sum: (name, tags = '') => sumOf(lines(), name, tags),
  };
}
