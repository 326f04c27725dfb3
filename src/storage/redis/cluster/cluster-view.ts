import type { Redis } from 'ioredis';
import type { QueriedServer, QueryClients } from '../connection/client/query-client.js';
import { endpointName, type HostPort } from '../connection/redis-address.js';

/** Number of slots in a Redis Cluster. */
export const SLOTS = 16_384;

/** Consecutive slots that one master serves. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: HostPort;
}

/** The state of a cluster according to one node. */
export interface ClusterView {
  /** Name of that node for the log. */
  readonly from: string;
  /** Configuration epoch, which rises with each change of slots. The view with the largest epoch is the newest. */
  readonly epoch: number;
  readonly ranges: readonly SlotRange[];
  /** Number of slots in the view. */
  readonly slots: number;
  /**
   * Ids of the nodes with slots, including replicas, or their addresses without ids. Two views of one cluster share
   * ids.
   */
  readonly ids: ReadonlySet<string>;
}

/**
 * Queries one node for the owners of slots (CLUSTER SLOTS) and the epoch (CLUSTER INFO). Rejects with an Error for the
 * log; `variable` is the name of the variable that contains the addresses.
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
        // Without permission for CLUSTER INFO, the epoch is unknown, and the first reply counts as the newest.
        client.call('CLUSTER', 'INFO').catch(() => ''),
      ]);
      return readView(name, server.endpoint, slots, String(info));
    },
    (_, said) => {
      if (/cluster support disabled/i.test(said)) {
        return (
          `${name} is not a node of a Redis Cluster (cluster mode is off); list cluster nodes in ` +
          `${variable}, or, for a single Redis, set the type to SINGLE`
        );
      }
      if (/unknown command '?`?cluster/i.test(said)) {
        return (
          `${name} does not support the CLUSTER command, so it may be a proxy or a Sentinel; list nodes ` +
          `of a Redis Cluster in ${variable}, or correct the type`
        );
      }
      // Login errors are the same on all nodes, so the message does not name the node.
      return /^(?:NOAUTH|WRONGPASS|NOPERM)\b/.test(said) ? said : `${name}: ${said}`;
    },
  );
}

/**
 * Parses the replies of the node at `asked` to CLUSTER SLOTS and CLUSTER INFO. Throws an Error if they are malformed.
 */
export function readView(from: string, asked: HostPort, slots: unknown, info: string): ClusterView {
  if (!Array.isArray(slots) || slots.length > SLOTS) throw new Error('the reply has an unknown format');
  const ids = new Set<string>();
  let count = 0;
  const ranges = slots.map((row: unknown) => {
    const [first, last, master, ...replicas] = Array.isArray(row) ? row : [];
    const [host, port, , more] = Array.isArray(master) ? master : [];
    if (!isSlot(first) || !isSlot(last) || first > last || !isPort(port)) {
      throw new Error('the reply has an unknown format');
    }
    for (const node of [master, ...replicas]) {
      const [host, port, id] = Array.isArray(node) ? node : [];
      // A service that only resembles a cluster may return no ids.
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
 * Returns the host of a node. A node that does not know its own address returns null or an empty string; a node without
 * a host name returns `?` (Redis documentation, CLUSTER SLOTS). Returns the IP address in these cases, or undefined if
 * the reply contains no IP address.
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
