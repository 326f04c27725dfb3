import type { Socket } from 'node:net';
import { AbstractConnector, type RedisOptions } from 'ioredis';

/** Lets an ioredis connect by `open`, which begins a connection, over TLS where its option `tls` is set. */
export function ownConnector(open: () => Socket): NonNullable<RedisOptions['Connector']> {
  return class extends AbstractConnector {
    constructor(options: unknown) {
      super((options as RedisOptions).disconnectTimeout ?? 0);
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      this.stream = open();
      return this.stream;
    }
  };
}
