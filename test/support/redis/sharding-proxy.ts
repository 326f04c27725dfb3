import { connect } from 'node:net';

/** Options of a proxy that distributes keys over several Redis servers. */
export interface ShardingProxyOptions {
  /** Ports of the servers on 127.0.0.1. */
  readonly servers: readonly number[];
  /** Whether only the text between the first `{` and the next `}` of a key selects its server. */
  readonly honoursHashTags: boolean;
  /** Port on 127.0.0.1; default: a free port. */
  readonly port?: number;
}

/** A real sharding proxy on 127.0.0.1. */
export interface ShardingProxy {
  readonly port: number;
  /** Changes the servers without closing client connections; absent if the proxy does not support this. */
  setServers?(servers: readonly number[]): Promise<void>;
  /** Kills the process, as a crash does. */
  kill(): Promise<void>;
  /**
   * Starts the proxy again on the same port, with the given servers or the previous ones. The process must have exited.
   */
  restart(servers?: readonly number[]): Promise<void>;
  stop(): Promise<void>;
}

/** Returns whether a port of 127.0.0.1 accepts connections. */
export function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
