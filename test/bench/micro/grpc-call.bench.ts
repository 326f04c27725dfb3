/*
 * The cost of gRPC between the HTTP/2 engine and the handler, from the head and DATA of a request to the functions that
 * write the answer. The handler returns an empty answer immediately, and these functions are empty. To run it: `node
 * build/test/bench/micro/grpc-call.bench.js [part of a name …]`.
 */
import type { GrpcServerOptions } from '../../../src/grpc/grpc-server.js';
import { CallContext } from '../../../src/grpc/h2-transport/call-context.js';
import { CallRouter } from '../../../src/grpc/h2-transport/call-router.js';
import { UnaryTarget, WaitingStreams } from '../../../src/grpc/h2-transport/unary-call.js';
import type { RequestHead, ServerConnection, ServerStream } from '../../../src/h2/request-handler.js';
import { SYSTEM_TIMERS } from '../../../src/runtime/timer-source.js';
import { grpcRequestHead, newFakeConnection } from '../../support/grpc/fake-server-stream.js';
import { prefixed } from '../../support/h2/http2-client.js';
import { type MicroCase, runCases } from './measure.js';

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const EMPTY = new Uint8Array(0);
const MESSAGE = prefixed(Buffer.alloc(60));
const HEADS = 1000;

class SilentStream implements ServerStream {
  readonly id = 1;
  readonly head: RequestHead;
  readonly connection: ServerConnection;
  state: unknown = undefined;
  readonly queuedBytes = 0;

  constructor(head: RequestHead, connection: ServerConnection) {
    this.head = head;
    this.connection = connection;
  }

  sendHeaders(): void {}
  sendData(): void {}
  sendTrailers(): void {}
  sendResponse(): void {}
  reset(): void {}
  consumed(): void {}
}

/** Ignores streams that wait for the end of a turn, because no turn of the event loop ends during the benchmark. */
class IgnoredStreams extends WaitingStreams {
  override add(): void {}
}

/** Runs calls with alternating heads, and a body in several chunks. */
function calls(heads: readonly RequestHead[], body: readonly Buffer[], readsDeadline = false): MicroCase {
  return () => {
    const options = {
      maxReceiveMessageBytes: 4 * 1024 * 1024,
      monotonicMicros: () => performance.now() * 1000,
    } as Partial<GrpcServerOptions> as GrpcServerOptions;
    const context = new CallContext(options, SYSTEM_TIMERS);
    const router = new CallRouter(context);
    const waiting = new IgnoredStreams();
    let deadlines = 0;
    router.add(
      PATH,
      (head) =>
        new UnaryTarget(
          PATH,
          (_message, call) => {
            if (readsDeadline) deadlines += call.deadlineMicros;
            return EMPTY;
          },
          head,
          context,
          waiting,
        ),
    );
    const connection = newFakeConnection();
    return (call) => {
      const stream = new SilentStream(heads[call % heads.length] as RequestHead, connection);
      router.onRequest(stream, false);
      for (let part = 0; part < body.length; part++) {
        const chunk = body[part] as Buffer;
        router.onData(stream, chunk, 0, chunk.length, part === body.length - 1);
      }
      if (Number.isNaN(deadlines)) throw new Error('a deadline is not a number');
    };
  };
}

const plain = grpcRequestHead(PATH);
const withTimeout = grpcRequestHead(PATH, 'grpc-timeout', '20m');
const traced = Array.from({ length: HEADS }, (_unused, index) =>
  grpcRequestHead(PATH, 'grpc-timeout', '20m', 'traceparent', `00-${index}-00`),
);

runCases(__filename, {
  'call, one head': calls([plain], [MESSAGE]),
  'call, one head, handler asks for the deadline': calls([withTimeout], [MESSAGE], true),
  'call, heads that all differ': calls(traced, [MESSAGE]),
  'call, message cut in two': calls([plain], [MESSAGE.subarray(0, 30), MESSAGE.subarray(30)]),
  'call, end in a frame of its own': calls([plain], [MESSAGE, Buffer.alloc(0)]),
});
