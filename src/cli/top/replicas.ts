import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withTimeout } from '../../runtime/turns.js';
import { type DebugServer, readDebugServer } from '../call/debug-server.js';
import { CommandError, EXIT } from '../io.js';

/** Maximum number of replicas that are called. */
export const MAX_REPLICAS = 256;

/**
 * Parses `--all`: `host:port,host:port`, or `dns:name:port` for all addresses of a name.
 * `tls` applies to addresses without a scheme.
 */
export function readReplicas(text: string, tls: boolean): readonly DebugServer[] {
  const named: DebugServer[] = [];
  for (const word of text.split(',').map((one) => one.trim())) {
    if (word === '') continue;
    const isDnsName = word.startsWith('dns:');
    const server = readDebugServer(isDnsName ? word.slice('dns:'.length) : word, tls);
    if (typeof server === 'string')
      throw new CommandError(
        EXIT.USAGE,
        `--all ${server}; to specify several replicas, separate their addresses with commas, or write ` +
          'dns:<name>:<port>',
      );
    named.push(isDnsName ? { ...server, isDnsName } : server);
  }
  if (named.length > 0) return named;
  throw new CommandError(
    EXIT.USAGE,
    '--all contains no address; write addresses such as 10.0.0.1:6070,10.0.0.2:6070',
  );
}

/** Replicas found by looking up the names. */
export interface FoundReplicas {
  readonly servers: readonly DebugServer[];
  /** Names whose lookup failed, and omitted replicas: one sentence each, without a full stop. */
  readonly problems: readonly string[];
}

/** Looks up the names, for at most `timeoutMs` milliseconds. Never rejects. */
export async function findReplicas(list: readonly DebugServer[], timeoutMs: number): Promise<FoundReplicas> {
  const found = await Promise.all(
    list.map((server) => (server.isDnsName ? addressesOf(server, timeoutMs) : [server])),
  );
  const servers = new Map<string, DebugServer>();
  const problems: string[] = [];
  for (const one of found.flat()) {
    if (typeof one === 'string') problems.push(one);
    else servers.set(`${one.host.toLowerCase()} ${one.port}`, one);
  }
  const all = [...servers.values()];
  if (all.length > MAX_REPLICAS) {
    problems.push(
      `there are ${all.length} replicas, but weir top calls only ${MAX_REPLICAS}; the numbers do not ` +
        'include the other replicas',
    );
  }
  return { servers: all.slice(0, MAX_REPLICAS), problems };
}

/** Resolves with a server for each address of the name, or with an error message. */
async function addressesOf(
  server: DebugServer,
  timeoutMs: number,
): Promise<readonly (DebugServer | string)[]> {
  const { host } = server;
  const onTimeout = () => {
    throw new Error(`no answer within ${timeoutMs} ms`);
  };
  try {
    const addresses = await withTimeout(timeoutMs, lookup(host, { all: true }), onTimeout);
    if (addresses.length === 0) throw new Error('the host name has no addresses');
    const first = addresses.find(({ family }) => family === 4)?.family ?? 6;
    // A replica with IPv4 and IPv6 addresses counts once and may listen on one family only, so only one family is used.
    return addresses
      .filter(({ family }) => family === first)
      .map(({ address }) => ({
        ...server,
        host: address,
        ...(isIP(host) === 0 && { certificateName: host }),
      }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return [`the addresses of dns:${host} cannot be found (${code ?? message}); check the name`];
  }
}
