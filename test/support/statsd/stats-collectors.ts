import { createSocket } from 'node:dgram';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** What statsd or dogstatsd would have received. */
export interface StatsCollector {
  readonly port: number;
  /** Whole lines, in the order in which they came. */
  lines(): string[];
  /** Sum of all deltas of a counter: `name` is what stands before the colon, `tags` what stands behind `|c`. */
  sum(name: string, tags?: string): number;
  close(): Promise<void>;
}

/** The sum over the lines `name:delta|c` and the tags given. */
function sumOf(lines: readonly string[], name: string, tags: string): number {
  let sum = 0;
  for (const line of lines) {
    if (!line.startsWith(`${name}:`) || !line.endsWith(`|c${tags}`)) continue;
    sum += Number(line.slice(name.length + 1, line.length - tags.length - 2));
  }
  return sum;
}

/** Listens on TCP as statsd does. */
export async function collectTcp(port = 0): Promise<StatsCollector & { cut(): void }> {
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
  return {
    port: (server.address() as AddressInfo).port,
    lines,
    sum: (name, tags = '') => sumOf(lines(), name, tags),
    cut,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}

/** Listens on UDP as dogstatsd does; also tells of whole packets. */
export async function collectUdp(port = 0): Promise<StatsCollector & { packets(): Buffer[] }> {
  const packets: Buffer[] = [];
  const socket = createSocket('udp4', (packet) => packets.push(packet));
  await new Promise<void>((resolve) => {
    socket.bind(port, '127.0.0.1', resolve);
  });
  const lines = () => packets.flatMap((packet) => packet.toString().split('\n'));
  return {
    port: socket.address().port,
    lines,
    packets: () => packets,
    sum: (name, tags = '') => sumOf(lines(), name, tags),
    close: () =>
      new Promise((resolve) => {
        socket.close(() => resolve());
      }),
  };
}
