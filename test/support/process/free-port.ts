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

/** Ports of 127.0.0.1 that were free a moment ago, all different and never the same twice in one process. */
export async function freePorts(count: number): Promise<number[]> {
  const end = firstEphemeralPort();
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST_PORT + Math.floor(Math.random() * (end - FIRST_PORT));
    if (handedOut.has(port) || !(await isFree(port))) continue;
    handedOut.add(port);
    ports.push(port);
  }
  return ports;
}
