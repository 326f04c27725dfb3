import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/**
 * First port to try, a multiple of {@link LANES}: it needs no privileges, and other software rarely uses fixed ports
 * from here on.
 */
const FIRST_PORT = 10_250;
/** Default first port of Linux for outgoing connections. */
const FIRST_EPHEMERAL_PORT = 32_768;

/**
 * Number of lanes of ports. Each test process of the machine has its own lane (.ci/test-environment.cjs), because
 * another process may have chosen a port that its server has not opened yet. The distance of the ports of a Redis
 * Cluster, 10,000, is a multiple.
 */
export const LANES = 50;
/** Lane of this process. Programs outside of jest, such as benchmarks, share lane 0. */
export const LANE = (globalThis as { readonly weirTestLane?: number }).weirTestLane ?? 0;

/** Ports that this process has handed out lately, because a server may not have opened its port yet. */
const handedOut = new Set<number>();
/** Attempts to find a port after which almost all ports of the lane are handed out, as in a long benchmark. */
const MAX_ATTEMPTS = 5000;

/**
 * Returns the end of the range to choose from. Ports for outgoing connections (ip_local_port_range) are excluded,
 * because the system may use one between the check and the start of the server.
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
 * Returns ports of 127.0.0.1 that were free a moment ago, and that no other test process chooses. They are all
 * different, and a process gets one again only after nearly all others. `partner` is added to each for a second port
 * that is free and reserved with it, such as the bus of a Redis Cluster.
 */
export async function freePorts(count: number, partner = 0): Promise<number[]> {
  const end = firstEphemeralPort() - partner;
  const ports: number[] = [];
  for (let attempts = 1; ports.length < count; attempts++) {
    // The servers that use the earlier ports are up by now, or stopped.
    if (attempts % MAX_ATTEMPTS === 0) {
      handedOut.clear();
      for (const port of ports) handedOut.add(port).add(port + partner);
    }
    if (attempts > 2 * MAX_ATTEMPTS) throw new Error('the machine has no free port for a test');
    const port =
      FIRST_PORT + LANE + LANES * Math.floor(Math.random() * Math.floor((end - FIRST_PORT) / LANES));
    const both = partner === 0 ? [port] : [port, port + partner];
    if (both.some((one) => handedOut.has(one))) continue;
    // Before the check, because another call may choose a port in the meantime.
    for (const one of both) handedOut.add(one);
    if (!(await Promise.all(both.map(isFree))).includes(false)) ports.push(port);
  }
  return ports;
}
