import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { GenericMethod } from '../../src/grpc/generic-method.js';
import { GrpcError, type GrpcServerOptions, STATUS } from '../../src/grpc/grpc-server.js';
import { CallRouter } from '../../src/grpc/h2-transport/call-router.js';
import { GrpcServerState } from '../../src/grpc/h2-transport/grpc-server-state.js';
import { BoundStreamingMethod } from '../../src/grpc/h2-transport/streaming-call.js';
import { BoundUnaryMethod, WaitingStreams } from '../../src/grpc/h2-transport/unary-call.js';
import { expectAtMost, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { FakeTimerSource } from '../support/clock/fake-timer-source.js';
import { BYTES } from '../support/grpc/bytes-encoder.js';
import { FakeServerStream, grpcRequestHead, newFakeConnection } from '../support/grpc/fake-server-stream.js';
import { prefixed } from '../support/h2/http2-client.js';

const gzipped = prefixed(gzipSync(Buffer.alloc(200_000)));
gzipped[0] = 1;

const PATHS = [
  '/t.T/Now',
  '/t.T/Later',
  '/t.T/Throw',
  '/c.C/Unary',
  '/c.C/Server',
  '/c.C/Client',
  '/c.C/Bidi',
  '/no',
];
const FIELDS = [
  [],
  ['grpc-timeout', '50m'],
  ['grpc-encoding', 'gzip'],
  ['grpc-timeout', 'x'],
  ['x-a-bin', '!!'],
];
const BODIES = [
  prefixed(Buffer.alloc(0)),
  prefixed(Buffer.alloc(3000, 1)),
  prefixed(Buffer.alloc(100)).subarray(0, 50),
  Buffer.of(0, 255, 255, 255, 255),
  Buffer.concat([prefixed(Buffer.of(1)), prefixed(Buffer.of(2)), prefixed(Buffer.of(3))]),
  gzipped,
  Buffer.of(7),
];

type Event =
  | { readonly kind: 'open'; readonly path: string; readonly fields: string[]; readonly end: boolean }
  | {
      readonly kind: 'data';
      readonly stream: number;
      readonly body: Buffer;
      readonly cut: number;
      readonly end: boolean;
    }
  | { readonly kind: 'trailers' | 'reset' | 'drained' | 'answer' | 'fail'; readonly stream: number }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'turn' };

const stream = fc.nat({ max: 5 });
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('open' as const),
      path: fc.constantFrom(...PATHS),
      fields: fc.constantFrom(...FIELDS),
      end: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('data' as const),
      stream,
      body: fc.constantFrom(...BODIES),
      cut: fc.nat({ max: 3100 }),
      end: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'trailers' as const,
        'reset' as const,
        'drained' as const,
        'answer' as const,
        'fail' as const,
      ),
      stream,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.constantFrom(1, 60, 100_000) }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'turn' as const }) },
);

/** A router with one method of each kind, and its streams, on fake connections. */
class World {
  readonly errors: unknown[] = [];
  readonly timers = new FakeTimerSource();
  readonly context: GrpcServerState;
  readonly router: CallRouter;
  readonly connection = newFakeConnection(() => this.timers.nowMs());
  readonly streams: FakeServerStream[] = [];
  readonly #requestEnded = new Set<FakeServerStream>();
  readonly #settle: ((fail: boolean) => void)[] = [];

  constructor() {
    const options = {
      maxReceiveMessageBytes: 100_000,
      receiveTimeoutMs: 60_000,
      monotonicMicros: () => this.timers.nowMs() * 1000,
      onError: (error: unknown) => this.errors.push(error),
    } as Partial<GrpcServerOptions> as GrpcServerOptions;
    this.context = new GrpcServerState(options, this.timers);
    this.router = new CallRouter(this.context);
    this.#addUnary();
    this.#addAuxiliary();
  }

  /**
   * Passes an event to the router, as the engine would. The engine sends no event for a stream whose response is
   * complete, nor for a request after its end.
   */
  play(event: Event): Promise<void> | undefined {
    if (event.kind === 'open') this.#open(event.path, event.fields, event.end);
    else if (event.kind === 'time') this.timers.advance(event.ms);
    else if (event.kind === 'turn') return setImmediate();
    else if (event.kind === 'answer' || event.kind === 'fail') this.#settle.shift()?.(event.kind === 'fail');
    else this.#onStream(event);
    return undefined;
  }

  /** Completes everything that is pending. */
  async end(): Promise<void> {
    for (const settle of this.#settle.splice(0)) settle(false);
    await setImmediate();
    for (const stream of this.streams) this.#reset(stream);
    // Waits for messages that are being inflated in the thread pool.
    for (let turn = 0; turn < 3; turn++) await setImmediate();
  }

  #onStream(event: Extract<Event, { stream: number }>): void {
    const stream = this.streams[event.stream];
    if (stream === undefined || stream.ended) return;
    if (event.kind === 'reset') this.#reset(stream);
    else if (event.kind === 'drained') this.router.onDrained(stream);
    else if (!this.#requestEnded.has(stream)) {
      if (event.kind !== 'data' || event.end) this.#requestEnded.add(stream);
      if (event.kind !== 'data') this.router.onTrailers(stream);
      else this.router.onData(stream, event.body, 0, Math.min(event.cut, event.body.length), event.end);
    }
  }

  #open(path: string, fields: string[], end: boolean): void {
    const stream = new FakeServerStream(grpcRequestHead(path, ...fields), this.connection);
    if (this.streams.length > 5) this.#reset(this.streams.shift() as FakeServerStream);
    this.streams.push(stream);
    if (end) this.#requestEnded.add(stream);
    this.router.onRequest(stream, end);
  }

  #reset(stream: FakeServerStream): void {
    if (stream.ended) return;
    stream.ended = true;
    this.router.onReset(stream);
  }

  #addUnary(): void {
    const waiting = new WaitingStreams();
    const handlers = {
      '/t.T/Now': (bytes: Uint8Array, _call: unknown, start: number, end: number) =>
        bytes.subarray(start, end),
      '/t.T/Throw': () => {
        throw new Error('thrown');
      },
      '/t.T/Later': () =>
        new Promise<Uint8Array>((resolve, reject) =>
          this.#settle.push((fail) => (fail ? reject(new Error('failed')) : resolve(Buffer.of(1)))),
        ),
    };
    for (const [path, handler] of Object.entries(handlers)) {
      this.router.add(
        path,
        (head) => new BoundUnaryMethod(path, handler, BYTES, head, this.context, waiting),
      );
    }
  }

  #addAuxiliary(): void {
    const later: GenericMethod['begin'] = (call) => ({
      onMessage: () => {},
      onRequestEnd: () => {
        this.#settle.push((fail) => {
          call.send(Buffer.of(1));
          call.end(fail ? new GrpcError(STATUS.NOT_FOUND, 'failed') : undefined);
        });
      },
    });
    const talk: GenericMethod['begin'] = (call) => {
      this.#settle.push((fail) => call.end(fail ? new GrpcError(STATUS.NOT_FOUND, 'failed') : undefined));
      return { onMessage: (message) => void call.send(message), onRequestEnd: () => call.end() };
    };
    const tell: GenericMethod['begin'] = (call) => ({
      onMessage: () => {
        for (let i = 0; i < 20; i++) call.send(Buffer.alloc(i));
        this.#settle.push(() => call.end());
      },
      onClosed: () => {
        throw new Error('thrown');
      },
    });
    const methods: GenericMethod[] = [
      { path: '/c.C/Unary', requestStream: false, responseStream: false, begin: later },
      { path: '/c.C/Server', requestStream: false, responseStream: true, begin: tell },
      { path: '/c.C/Client', requestStream: true, responseStream: false, begin: later },
      { path: '/c.C/Bidi', requestStream: true, responseStream: true, begin: talk },
    ];
    for (const method of methods) {
      this.router.add(method.path, (head) => new BoundStreamingMethod(method, head, this.context));
    }
  }
}

describe('calls with events in any order', () => {
  test('never throw, never send after their end, and leave no state behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
        const world = new World();
        for (const event of events) await world.play(event);
        await world.end();
        expectSame(world.context.running, 0);
        expectSame(world.context.deadlines.size, 0);
        expectAtMost(world.timers.waiting, 1);
        const probe = new FakeServerStream(grpcRequestHead('/'), world.connection);
        expectSame(world.context.budgetOf(probe).bytes, 0);
        for (const error of world.errors) expect(String(error)).toMatch(/thrown|failed/);
      }),
      runs(300),
    );
  });
});
