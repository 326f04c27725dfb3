import type { RateLimitRequest, RateLimitResponse } from '../../../src/codec/messages.js';
import { protoFiles } from '../../../src/codec/proto-files.js';
import { RATE_LIMIT_SERVICE, SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import type { GrpcServer, UnaryHandler } from '../../../src/grpc/grpc-server.js';
import { H2GrpcServer } from '../../../src/grpc/h2-transport/h2-grpc-server.js';
import { Health } from '../../../src/grpc/health.js';
import { addReflection } from '../../../src/grpc/reflection.js';
import { createReferenceCodec } from '../codec/reference-codec.js';
import { BYTES } from './bytes-encoder.js';
import { SERVER_BOUNDS } from './server-bounds.js';

/** Decides one request. The index counts requests from 0. */
export type Decide = (
  request: RateLimitRequest,
  index: number,
) => RateLimitResponse | Promise<RateLimitResponse>;

export interface RlsServer {
  readonly address: string;
  readonly port: number;
  readonly health: Health;
  /** Every request, in order of arrival. */
  readonly requests: RateLimitRequest[];
  readonly server: GrpcServer;
}

/**
 * Starts a real gRPC server on 127.0.0.1 with health and reflection, whose decisions the test makes. Close `server`
 * after use.
 */
export async function startRlsServer(decide: Decide): Promise<RlsServer> {
  const codec = createReferenceCodec();
  const server = new H2GrpcServer({
    ...SERVER_BOUNDS,
    maxReceiveMessageBytes: 4 * 1024 * 1024,
    maxConcurrentStreams: 1000,
    maxHeaderListBytes: 16_384,
    maxConnectionAgeMs: Number.POSITIVE_INFINITY,
    maxConnectionAgeGraceMs: Number.POSITIVE_INFINITY,
    keepAliveIntervalMs: Number.POSITIVE_INFINITY,
    keepAliveTimeoutMs: 20_000,
    monotonicMicros: () => performance.now() * 1000,
    onError: () => {},
    onBadConnection: () => {},
  });
  const requests: RateLimitRequest[] = [];
  const handler: UnaryHandler<Uint8Array> = async (bytes, _call, start, end) => {
    const request = codec.decodeRequest(bytes.subarray(start, end));
    return codec.encodeResponse(await decide(request, requests.push(request) - 1));
  };
  server.addUnary(SHOULD_RATE_LIMIT_PATH, handler, BYTES);
  const health = new Health([RATE_LIMIT_SERVICE, 'ratelimit']);
  health.addTo(server);
  addReflection(server, protoFiles());
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  return { address: `127.0.0.1:${port}`, port, health, requests, server };
}
