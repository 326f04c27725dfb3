import { Gauge, type Registry } from 'prom-client';
import type { GrpcLoad } from '../../grpc/grpc-server.js';

/**
 * What is held for callers and still to be done for them at this moment; all of it is 0 when nobody asks for anything.
 */
export interface Load {
  /** Undefined where the transport does not know. */
  readonly grpc: GrpcLoad | undefined;
  /** Memory of decoded requests that wait for the store. */
  readonly storeWaitingBytes: number;
  /** Requests that take long. */
  readonly costly: { readonly requests: number; readonly bytes: number; readonly connections: number };
}

const WAITING = ['reads', 'answers', 'deadlines', 'inflating', 'lost'] as const;

/** Makes gauges of what `load` says whenever metrics are asked for. */
export function exposeLoad(registry: Pick<Registry, 'registerMetric'>, load: () => Load): void {
  const registers = [registry as Registry];
  const gauge = (name: string, help: string, value: (load: Load) => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value(load()));
      },
    });
  };
  gauge(
    'weir_costly_requests_waiting',
    'Requests that take long and wait for their turns.',
    ({ costly }) => costly.requests,
  );
  gauge(
    'weir_costly_requests_waiting_bytes',
    'Memory of the messages that wait with them.',
    ({ costly }) => costly.bytes,
  );
  gauge(
    'weir_costly_requests_waiting_connections',
    'Connections that they came by.',
    ({ costly }) => costly.connections,
  );
  gauge(
    'weir_store_waiting_bytes',
    'Memory of the requests that wait for Redis.',
    ({ storeWaitingBytes }) => storeWaitingBytes,
  );
  if (load().grpc === undefined) return;
  gauge('weir_grpc_connections', 'Open gRPC connections.', ({ grpc }) => grpc?.connections ?? 0);
  gauge(
    'weir_grpc_buffered_bytes',
    'Memory held for gRPC connections, which GRPC_MAX_BUFFERED_BYTES bounds.',
    ({ grpc }) => grpc?.bufferedBytes ?? 0,
  );
  new Gauge({
    name: 'weir_grpc_waiting',
    help:
      'What waits: connections to be read (reads), calls for their answers (answers), for their ' +
      'deadlines (deadlines), messages to be inflated (inflating), lost connections for the end of their ' +
      'calls (lost).',
    labelNames: ['for'],
    registers,
    collect() {
      const { grpc } = load();
      for (const what of WAITING) this.set({ for: what }, grpc?.[what] ?? 0);
    },
  });
}
