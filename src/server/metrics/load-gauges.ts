import type { GrpcLoad } from '../../grpc/grpc-server.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';

/** Memory and work that callers cause at this moment. All values are 0 without requests. */
export interface Load {
  /** Undefined if the transport does not report it. */
  readonly grpc: GrpcLoad | undefined;
  /** Memory of decoded requests that wait for the store, in bytes. */
  readonly storeWaitingBytes: number;
  /** Large requests that wait for their turn. */
  readonly large: { readonly size: number; readonly bytes: number };
}

const WAITING = {
  reads: 'connections with data that weir has not read yet',
  answers: 'calls that weir has not answered yet',
  deadlines: 'calls with a pending deadline',
  inflating: 'messages that are being decompressed or wait for decompression',
  lost: 'closed connections with calls that have not ended',
} as const;
const WAITERS = Object.keys(WAITING) as (keyof typeof WAITING)[];

/** Exposes the values that `load` returns. */
export function exposeLoad(registry: FamilyRegistry, load: () => Load): void {
  const gauge = (name: string, help: string, value: (load: Load) => number): void => {
    registry.gauge({ name, help }, () => value(load()));
  };
  gauge('weir_large_requests_waiting', 'Large requests that wait for their turn.', ({ large }) => large.size);
  gauge(
    'weir_large_requests_waiting_bytes',
    'Memory used by large requests that wait for their turn, in bytes.',
    ({ large }) => large.bytes,
  );
  gauge(
    'weir_store_waiting_bytes',
    'Memory used by requests that wait for Redis, in bytes.',
    ({ storeWaitingBytes }) => storeWaitingBytes,
  );
  if (load().grpc === undefined) return;
  gauge('weir_grpc_connections', 'Open gRPC connections.', ({ grpc }) => grpc?.connections ?? 0);
  gauge(
    'weir_grpc_buffered_bytes',
    'Memory used by gRPC connections, in bytes, at most GRPC_MAX_BUFFERED_BYTES.',
    ({ grpc }) => grpc?.bufferedBytes ?? 0,
  );
  registry.gauge(
    {
      name: 'weir_grpc_waiting',
      help: 'Connections, calls or messages that wait on the gRPC port, by reason.',
      labels: { for: { meaning: 'The reason for waiting.', values: WAITING } },
    },
    () => {
      const { grpc } = load();
      return WAITERS.map((what) => [{ for: what }, grpc?.[what] ?? 0]);
    },
  );
}

/** Exposes whether this server accepts requests, as `/healthcheck` does. */
export function exposeServing(registry: FamilyRegistry, isServing: () => boolean): void {
  registry.gauge(
    {
      name: 'weir_serving',
      help: '1 if this server accepts requests, 0 if not. /healthcheck shows the reason.',
    },
    () => Number(isServing()),
  );
}
