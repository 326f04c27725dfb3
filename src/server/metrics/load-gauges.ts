import type { GrpcLoad } from '../../grpc/grpc-server.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';

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

const WAITING = {
  reads: 'connections whose bytes are to be read',
  answers: 'calls that are to be answered',
  deadlines: 'calls that have a deadline',
  inflating: 'compressed messages that are to be inflated',
  lost: 'connections that are gone, and some of whose calls have not ended',
} as const;
const WAITERS = Object.keys(WAITING) as (keyof typeof WAITING)[];

/** Shows what `load` says. */
export function exposeLoad(registry: FamilyRegistry, load: () => Load): void {
  const gauge = (name: string, help: string, value: (load: Load) => number): void => {
    registry.gauge({ name, help }, () => value(load()));
  };
  gauge(
    'weir_costly_requests_waiting',
    'Requests that take long and wait for their turns.',
    ({ costly }) => costly.requests,
  );
  gauge(
    'weir_costly_requests_waiting_bytes',
    'Memory of the requests that take long and wait for their turns.',
    ({ costly }) => costly.bytes,
  );
  gauge(
    'weir_costly_requests_waiting_connections',
    'Connections of the requests that take long and wait for their turns.',
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
  registry.gauge(
    {
      name: 'weir_grpc_waiting',
      help: 'What waits on the gRPC port, by what it waits for.',
      labels: { for: { meaning: 'What waits.', values: WAITING } },
    },
    () => {
      const { grpc } = load();
      return WAITERS.map((what) => [{ for: what }, grpc?.[what] ?? 0]);
    },
  );
}

/** Shows whether this server should get requests, as `/healthcheck` says. */
export function exposeServing(registry: FamilyRegistry, isServing: () => boolean): void {
  registry.gauge(
    {
      name: 'weir_serving',
      help: '1 when this server should get requests, 0 when it should not: /healthcheck says why.',
    },
    () => Number(isServing()),
  );
}
