import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withTimeout } from '../../runtime/turns.js';
import { type DebugServer, readDebugServer } from '../call/debug-server.js';

/** Most replicas that are asked. */
export const MAX_REPLICAS = 256;

/** A replica, or a name that all replicas have. */
interface Named {
  readonly server: DebugServer;
  /** Whether each address of the name is a replica. */
  readonly byName: boolean;
}

/** Where the replicas are. */
export type ReplicaList = readonly Named[];

/**
 * `host:port,host:port`, or `dns:name:port` for all addresses of a name; a sentence where it is neither. `tls` where an
 * address does not say: whether to speak TLS.
 */
export function readReplicas(text: string, tls: boolean): ReplicaList | string {
  const named: Named[] = [];
  for (const word of text.split(',').map((one) => one.trim())) {
    if (word === '') continue;
    const byName = word.startsWith('dns:');
    const server = readDebugServer(byName ? word.slice('dns:'.length) : word, tls);
    if (typeof server === 'string') {
      return `--all ${server}; write the debug ports of all replicas with commas between them, or dns:<name>:<port>`;
    }
    named.push({ server, byName });
  }
  return named.length > 0 ? named : '--all names no replica; write such as 10.0.0.1:6070,10.0.0.2:6070';
}

/** The replicas that there are now. */
export interface FoundReplicas {
  readonly servers: readonly DebugServer[];
  /** Names that could not be looked up, and what is left out, a sentence each. */
  readonly problems: readonly string[];
}

/** Looks up the names, for `timeoutMs` at most. Never rejects. */
export async function findReplicas(list: ReplicaList, timeoutMs: number): Promise<FoundReplicas> {
  const found = await Promise.all(
    list.map(({ server, byName }) => (byName ? addressesOf(server, timeoutMs) : [server])),
  );
  const servers = new Map<string, DebugServer>();
  const problems: string[] = [];
  for (const one of found.flat()) {
    if (typeof one === 'string') problems.push(one);
    else servers.set(`${one.host.toLowerCase()} ${one.port}`, one);
  }
  const all = [...servers.values()];
  if (all.length > MAX_REPLICAS) {
    problems.push(`there are ${all.length} replicas, and ${MAX_REPLICAS} of them are asked`);
  }
  return { servers: all.slice(0, MAX_REPLICAS), problems };
}

/** A server for each address of the name. */
async function addressesOf(
  server: DebugServer,
  timeoutMs: number,
): Promise<readonly (DebugServer | string)[]> {
  const { host } = server;
  const late = () => {
    throw new Error(`no answer within ${timeoutMs} ms`);
  };
  try {
    const addresses = await withTimeout(timeoutMs, lookup(host, { all: true }), late);
    if (addresses.length === 0) throw new Error('it has none');
    const first = addresses.find(({ family }) => family === 4)?.family ?? 6;
    // A replica that has addresses of both kinds is one, and may listen on one of them only.
    return addresses
      .filter(({ family }) => family === first)
      .map(({ address }) => ({
        ...server,
        host: address,
        ...(isIP(host) === 0 && { certificateName: host }),
      }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return [`dns:${host} has no addresses (${code ?? message})`];
  }
}
