import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Ports that need no rights, and that other software seldom has fixed. */
const FIRST_PORT = 10_240;
/** Where Linux begins to take ports for outgoing connections, unless told otherwise. */
const FIRST_EPHEMERAL_PORT = 32_768;

/** Ports of this process already handed out: a server that is told of one may not have taken it yet. */
const handedOut = new Set<number>();

/**
 * Ports are chosen below those that the system gives to outgoing connections (ip_local_port_range): one of these may
 * take a port between our look at it and the start of the server that it is for.
 */
function firstEphemeralPort(): number {
  try {
    const [first] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/);
    const port = Number(first);
    return port > FIRST_PORT + 1000 ? port : FIRST_EPHEMERAL_PORT;
  } catch {
    return FIRST_EPHEMERAL_PORT;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/**
 * Ports of 127.0.0.1 that were free a moment ago, all different and never the same twice in one process. `partner` is
 * added to each for a second port that is free and taken with it, as the bus of a Redis Cluster is.
 */
export async function freePorts(count: number, partner = 0): Promise<number[]> {
  const end = firstEphemeralPort() - partner;
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST_PORT + Math.floor(Math.random() * (end - FIRST_PORT));
    const both = partner === 0 ? [port] : [port, port + partner];
    if (both.some((one) => handedOut.has(one)) || (await Promise.all(both.map(isFree))).includes(false))
      continue;
    for (const one of both) handedOut.add(one);
    ports.push(port);
  }
  return ports;
}
