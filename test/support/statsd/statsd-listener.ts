import { createServer, type Server, type Socket } from 'node:net';
import { closeLater } from '../process/close-later.js';
import { freePorts } from '../process/free-port.js';

/** Metrics that statsd clients sent over TCP: sums of counters, last values of gauges, and every timer value. */
export interface StatsdListener {
  readonly port: number;
  /** Returns the sum of a counter so far; 0 if it was never sent. */
  counter(name: string): number;
  /** Returns all nonzero counters whose names start with `prefix`, by the rest of the name. */
  countersUnder(prefix: string): Record<string, number>;
  /** Names of all received metrics. */
  names(): string[];
  /** Lines that do not have the form `name:value|type`. */
  readonly malformed: readonly string[];
}

const LINE = /^([^:|]+):(-?[0-9.]+(?:e[+-]?[0-9]+)?)\|(c|g|ms|h)$/;

/** A real TCP listener on 127.0.0.1 that parses statsd, one metric a line, from any number of connections. */
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
  closeLater(server, () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

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
  };
}
