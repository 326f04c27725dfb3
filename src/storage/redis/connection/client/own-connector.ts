import type { Socket } from 'node:net';
import { AbstractConnector, type RedisOptions } from '../../../../ioredis.js';

/**
 * Maximum bytes that a server may send on a connection, at once and in each second, because ioredis reads everything. A
 * cluster of a thousand masters with scattered slots sends less.
 */
export const MAX_RECEIVED_BYTES = 4 * 1024 * 1024;
const BYTES_PER_SECOND = 4096;

/** Returns a connector for ioredis that opens connections with `open`, over TLS if the option `tls` is set. */
export function ownConnector(open: () => Socket): NonNullable<RedisOptions['Connector']> {
  return class extends AbstractConnector {
    constructor(options: unknown) {
      super((options as RedisOptions).disconnectTimeout ?? 0);
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      const stream = open();
      endFlood(stream);
      this.stream = stream;
      return stream;
    }
  };
}

function endFlood(stream: Socket): void {
  const openedMs = performance.now();
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    const maxBytes = MAX_RECEIVED_BYTES + (BYTES_PER_SECOND * (performance.now() - openedMs)) / 1000;
    if (bytes > maxBytes) stream.destroy(new Error('the server sent more data than requested'));
  });
}
