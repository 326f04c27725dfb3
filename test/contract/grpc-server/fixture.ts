import type { ChannelCredentials } from '@grpc/grpc-js';
import { expect } from '@jest/globals';
import type { GrpcServerOptions, ServerCall } from '../../../src/grpc/grpc-server.js';
import { H2GrpcServer } from '../../../src/grpc/h2-transport/h2-grpc-server.js';
import { BYTES } from '../../support/grpc/bytes-encoder.js';
import { RawClient } from '../../support/grpc/grpc-client.js';
import { SERVER_BOUNDS } from '../../support/grpc/server-bounds.js';
import { callFrame, emptyMessageFrame, RawHttp2Client } from '../../support/h2/raw-http2.js';
import { closeLater } from '../../support/process/close-later.js';
import { waitFor } from '../../support/process/wait-for.js';

export const ECHO = '/test.Test/Echo';
export const HOLD = '/test.Test/Hold';
/** Constant time of the injected monotonic clock. */
export const NOW_MICROS = 5_000_000_000;

/** A call that waits in the {@link HOLD} handler. */
export interface HeldCall {
  readonly info: ServerCall;
  answer(message: Uint8Array): void;
}

/** Servers and clients of one test. */
export class Fixture {
  /** Errors reported to `onError` and `onBadConnection`. */
  readonly errors: unknown[] = [];
  readonly held: HeldCall[] = [];

  /** Creates a server with an echo method and a method that waits. It is not listening yet. */
  server(options: Partial<GrpcServerOptions> = {}): H2GrpcServer {
    const server = new H2GrpcServer({
      ...SERVER_BOUNDS,
      maxReceiveMessageBytes: 4 * 1024 * 1024,
      maxConcurrentStreams: 100,
      maxHeaderListBytes: 16_384,
      maxConnectionAgeMs: Number.POSITIVE_INFINITY,
      maxConnectionAgeGraceMs: Number.POSITIVE_INFINITY,
      keepAliveIntervalMs: Number.POSITIVE_INFINITY,
      keepAliveTimeoutMs: 20_000,
      monotonicMicros: () => NOW_MICROS,
      onError: (error) => this.errors.push(error),
      onBadConnection: (message) => this.errors.push(message),
      ...options,
    });
    server.addUnary(ECHO, (bytes, _call, start, end) => bytes.subarray(start, end), BYTES);
    server.addUnary(
      HOLD,
      (_message, info) => new Promise((resolve) => this.held.push({ info, answer: resolve })),
      BYTES,
    );
    return closeLater(server, (one) => one.close());
  }

  /** Checks that a new connection is served. */
  async expectToServe(port: number): Promise<void> {
    const reply = await this.client(port).unary(ECHO, Buffer.from('still here'));
    expect(reply).toEqual({ code: 0, message: Buffer.from('still here') });
  }

  async listening(options: Partial<GrpcServerOptions> = {}): Promise<{ server: H2GrpcServer; port: number }> {
    const server = this.server(options);
    return { server, port: await server.listen({ host: '127.0.0.1', port: 0 }) };
  }

  /** `where`: a port of 127.0.0.1, or an address in gRPC syntax. */
  client(where: number | string, channel?: ChannelCredentials): RawClient {
    return new RawClient(typeof where === 'number' ? `127.0.0.1:${where}` : where, channel);
  }

  /** Connects a client that sends frames by hand, with one call (stream 1) in the {@link HOLD} handler. */
  async rawHeldCall(port: number): Promise<{ raw: RawHttp2Client; call: HeldCall }> {
    const raw = new RawHttp2Client(port);
    await raw.acknowledgeSettings();
    raw.send(callFrame(1, HOLD));
    raw.send(emptyMessageFrame(1));
    return { raw, call: await this.untilHeld() };
  }

  /** Waits until `count` calls have reached the {@link HOLD} handler, and returns the last. */
  async untilHeld(count = 1): Promise<HeldCall> {
    return waitFor(`${count} held calls`, () => this.held[count - 1]);
  }
}
