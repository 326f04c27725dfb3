import type { GrpcServerOptions, ServerCall, UnaryHandler } from '../../../src/grpc/grpc-server.js';
import { CallRouter } from '../../../src/grpc/h2-transport/call-router.js';
import { GrpcServerState } from '../../../src/grpc/h2-transport/grpc-server-state.js';
import { BoundUnaryMethod, WaitingStreams } from '../../../src/grpc/h2-transport/unary-call.js';
import { H2Connection } from '../../../src/h2/connection.js';
import { FakeTimerSource } from '../clock/fake-timer-source.js';
import {
  END_STREAM,
  frame,
  headers,
  PREFACE,
  rst,
  SETTINGS_ACK,
  settings,
  TYPE,
  windowUpdate,
} from '../h2/h2-frames.js';
import { TEST_LIMITS } from '../h2/h2-limits.js';
import { MemorySink } from '../h2/h2-peer.js';
import { prefixed } from '../h2/http2-client.js';
import { BYTES } from './bytes-encoder.js';

const PATHS = { now: '/t.T/Now', later: '/t.T/Later' } as const;
const CANCEL = 8;
const INITIAL_WINDOW_SIZE = 4;

/** One connection of the engine with unary gRPC calls, whose answers and resets a test chooses. */
export class GrpcPeer {
  readonly timers = new FakeTimerSource();
  readonly connection: H2Connection;
  /** Ids of the streams whose listeners heard of a reset, or that the call is forgotten, in this order. */
  readonly resets: number[] = [];
  readonly forgotten: number[] = [];
  readonly #pending = new Map<number, (setsListener: boolean) => void>();

  /** @param windowBytes the initial flow control window for each response */
  constructor(windowBytes = 65_535) {
    const options = {
      maxReceiveMessageBytes: 1000,
      monotonicMicros: () => this.timers.nowMs() * 1000,
      onError: (error: unknown) => {
        throw error;
      },
    } as Partial<GrpcServerOptions> as GrpcServerOptions;
    const context = new GrpcServerState(options, this.timers);
    const router = new CallRouter(context);
    const waiting = new WaitingStreams();
    const answerNow: UnaryHandler<Uint8Array> = (bytes, call, start, end) =>
      this.#answer(bytes.subarray(start, end), call, true);
    const answerLater: UnaryHandler<Uint8Array> = (bytes, call, start, end) => {
      const copy = Buffer.from(bytes.subarray(start, end));
      return new Promise((resolve) => {
        this.#pending.set(copy.readUInt32BE(), (sets) => resolve(this.#answer(copy, call, sets)));
      });
    };
    router.add(
      PATHS.now,
      (head) => new BoundUnaryMethod(PATHS.now, answerNow, BYTES, head, context, waiting),
    );
    router.add(
      PATHS.later,
      (head) => new BoundUnaryMethod(PATHS.later, answerLater, BYTES, head, context, waiting),
    );
    const events = {
      onOutput: () => {},
      onEstablished: () => {},
      onPingAck: () => {},
      onProtocolError: () => {},
    };
    this.connection = new H2Connection(new MemorySink(), router, events, {
      peer: '127.0.0.1:1',
      limits: TEST_LIMITS,
      nowMs: () => this.timers.nowMs(),
    });
    this.#send(PREFACE, settings([INITIAL_WINDOW_SIZE, windowBytes]), SETTINGS_ACK);
  }

  /** Starts a call. A call of `now` sets a listener and is over at once; {@link answer} answers a call of `later`. */
  call(streamId: number, kind: keyof typeof PATHS, ...fields: string[]): this {
    const message = Buffer.alloc(4);
    message.writeUInt32BE(streamId);
    const head = [':method: POST', ':scheme: http', `:path: ${PATHS[kind]}`, ':authority: weir'];
    this.#send(
      headers(streamId, 0, ...head, 'content-type: application/grpc', 'te: trailers', ...fields),
      frame(TYPE.DATA, END_STREAM, streamId, prefixed(message)),
    );
    return this;
  }

  /** Answers a call, which sets a listener before if `setsListener`. */
  async answer(streamId: number, setsListener = true): Promise<void> {
    this.#pending.get(streamId)?.(setsListener);
    this.#pending.delete(streamId);
    // The transport gets the answer in a microtask.
    await Promise.resolve();
    await Promise.resolve();
    this.connection.flush();
  }

  reset(streamId: number): void {
    this.#send(rst(streamId, CANCEL));
  }

  /** Allows the server to send the response of a stream. */
  openWindow(streamId: number): void {
    this.#send(windowUpdate(streamId, 1000));
  }

  #send(...frames: Buffer[]): void {
    this.connection.receive(Buffer.concat(frames));
  }

  #answer(message: Uint8Array, call: ServerCall, setsListener: boolean): Uint8Array {
    const id = Buffer.from(message).readUInt32BE();
    if (setsListener) {
      call.resetListener = {
        onReset: () => void this.resets.push(id),
        onForgotten: () => void this.forgotten.push(id),
      };
    }
    return message;
  }
}
