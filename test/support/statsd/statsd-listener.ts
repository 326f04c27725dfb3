import { createServer, type Server, type Socket } from 'node:net';
import { freePorts } from '../process/free-port.js';

/** What statsd clients sent over TCP: sums of counters, last values of gauges, every timer value. */
export interface StatsdListener {
  readonly port: number;
  /** Sum of a counter so far; 0 for one that never came. */
  counter(name: string): number;
  /** All counters whose names start with `prefix`, that are not 0, by the rest of their name. */
  countersUnder(prefix: string): Record<string, number>;
  /** Names of everything that came, of any kind. */
  names(): string[];
  /** Lines that are not `name:value|type`. */
  readonly malformed: readonly string[];
  close(): Promise<void>;
}

const LINE = /^([^:|]+):(-?[0-9.]+(?:e[+-]?[0-9]+)?)\|(c|g|ms|h)$/;

/** A real TCP listener on 127.0.0.1 that reads statsd, one metric a line, from any number of connections. */
export async function startStatsdListener(): Promise<StatsdListener> {
  const [port = 0] = await freePorts(1);
  const counters = new Map<string, number>();
  const names = new Set<string>();
  const malformed: string[] = [];
  const sockets = new Set<Socket>();

  const read = (line: string): void => {
    const parts = LINE.exec(line);
    if (parts === null) {
      malformed.push(line);
      return;
    }
    const [, name = '', value = '', type] = parts;
    names.add(name);
    if (type === 'c') counters.set(name, (counters.get(name) ?? 0) + Number(value));
  };

  const server: Server = createServer((socket) => {
    let rest = '';
    sockets.add(socket);
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') read(line);
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));

  return {
    port,
    malformed,
    counter: (name) => counters.get(name) ?? 0,
    countersUnder: (prefix) =>
      Object.fromEntries(
        [...counters]
          .filter(([name, value]) => name.startsWith(prefix) && value !== 0)
          .map(([name, value]): [string, number] => [name.slice(prefix.length), value])
          .sort(([a], [b]) => (a < b ? -1 : 1)),
      ),
    names: () => [...names].sort(),
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
