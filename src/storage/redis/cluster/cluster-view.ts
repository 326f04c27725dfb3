import type { Redis } from 'ioredis';
import type { QueriedServer, QueryClients } from '../connection/client/query-client.js';
import { endpointName, type HostPort } from '../connection/redis-address.js';

/** Slots of a Redis Cluster. */
export const SLOTS = 16_384;

/** Slots in a row that one master serves. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: HostPort;
}

/** What one node says of its cluster. */
export interface ClusterView {
  /** Who says it, as the log may show it. */
  readonly from: string;
  /** Grows with each change of who serves what: of several views the one with the largest is the newest. */
  readonly epoch: number;
  readonly ranges: readonly SlotRange[];
  /** How many slots they are. */
  readonly slots: number;
  /**
   * Ids of the nodes that have slots, replicas included, or their addresses where ids are not told; what nodes of one
   * cluster say has some in common.
   */
  readonly ids: ReadonlySet<string>;
}

/**
 * Asks one node which master serves which slots (CLUSTER SLOTS), and how new that is (CLUSTER INFO). Rejects with an
 * Error for the log; `variable` names the one that the addresses come from.
 */
export function queryNode(
  clients: QueryClients,
  server: QueriedServer,
  variable: string,
): Promise<ClusterView> {
  const name = endpointName(server.endpoint);
  return clients.ask(
    server,
    async (client: Redis) => {
      const [slots, info] = await Promise.all([
        client.call('CLUSTER', 'SLOTS'),
        // Who may not ask it takes the first answer for the newest.
        client.call('CLUSTER', 'INFO').catch(() => ''),
      ]);
      return readView(name, server.endpoint, slots, String(info));
    },
    (_, said) => {
      if (/cluster support disabled/i.test(said)) {
        return (
          `${name} is no node of a Redis Cluster (cluster mode is off there); name nodes of one in ${variable}, or, ` +
          'for a single Redis, leave out its type'
        );
      }
      if (/unknown command '?`?cluster/i.test(said)) {
        return (
          `${name} knows no CLUSTER, as proxies and Sentinels do not; name nodes of a Redis Cluster in ${variable}, ` +
          'or correct its type'
        );
      }
      // What is said of the login does not depend on the node.
      return /^(?:NOAUTH|WRONGPASS|NOPERM)\b/.test(said) ? said : `${name}: ${said}`;
    },
  );
}

/**
 * Reads the answers to CLUSTER SLOTS and CLUSTER INFO of a node that was asked at `asked`. Throws an Error where it is
 * none.
 */
export function readView(from: string, asked: HostPort, slots: unknown, info: string): ClusterView {
  if (!Array.isArray(slots) || slots.length > SLOTS) throw new Error('it answers in an unknown form');
  const ids = new Set<string>();
  let count = 0;
  const ranges = slots.map((row: unknown) => {
    const [first, last, master, ...replicas] = Array.isArray(row) ? row : [];
    const [host, port, , more] = Array.isArray(master) ? master : [];
    if (!isSlot(first) || !isSlot(last) || first > last || !isPort(port)) {
      throw new Error('it answers in an unknown form');
    }
    for (const node of [master, ...replicas]) {
      const [host, port, id] = Array.isArray(node) ? node : [];
      // What only looks like a cluster may tell none.
      ids.add(typeof id === 'string' ? id : `${host}:${port}`);
    }
    count += last - first + 1;
    return { first, last, master: { host: hostOf(host, more) ?? asked.host, port } };
  });
  return {
    from,
    epoch: Number(/cluster_current_epoch:(\d+)/.exec(info)?.[1] ?? 0),
    ranges,
    slots: count,
    ids,
  };
}

/**
 * A node that does not know its own address answers null, an empty text, or `?` where it should tell a host name and
 * has none (Redis documentation, CLUSTER SLOTS): then its IP address, if that is told, else where it was asked.
 */
function hostOf(host: unknown, more: unknown): string | undefined {
  if (typeof host === 'string' && host !== '' && host !== '?') return host;
  const at = Array.isArray(more) ? more.indexOf('ip') : -1;
  const ip: unknown = at < 0 ? undefined : (more as unknown[])[at + 1];
  return typeof ip === 'string' && ip !== '' ? ip : undefined;
}

function isSlot(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < SLOTS;
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536;
}
