import { connect } from 'node:net';

/** What spreads keys over several Redis servers. */
export interface ShardingProxyOptions {
  /** Ports of the servers on 127.0.0.1. */
  readonly servers: readonly number[];
  /** Whether only what stands between the first `{` and the next `}` of a key says where it lies. */
  readonly honoursHashTags: boolean;
  /** Where it listens on 127.0.0.1; default a free port. */
  readonly port?: number;
}

/** A real proxy that shards, on 127.0.0.1. */
export interface ShardingProxy {
  readonly port: number;
  /** From now on these are its servers, on the connections that there are; absent where it cannot do that. */
  setServers?(servers: readonly number[]): Promise<void>;
  /** Ends the process at once, as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on the same port, over the servers given now or before. The process must have ended. */
  restart(servers?: readonly number[]): Promise<void>;
  stop(): Promise<void>;
}

/** Whether anything accepts connections on that port of 127.0.0.1. */
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
