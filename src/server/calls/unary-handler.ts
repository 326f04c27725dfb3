import { ResponseEncoder } from '../../codec/encode-response.js';
import type { RateLimitResponse } from '../../codec/messages.js';
import {
  GrpcError,
  type MessageEncoder,
  type ServerCall,
  STATUS,
  type UnaryHandler,
} from '../../grpc/grpc-server.js';
import type { Clock } from '../../limiter/clock.js';
import { type Caller, ForwardingCaller } from '../../service/caller.js';
import { Refusal } from '../../service/refusal.js';
import type { ShouldRateLimit } from '../../service/should-rate-limit.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { Decide } from '../ports/json-endpoint.js';
import type { OtlpTracing } from '../tracing/otlp-tracing.js';
import { type CallTrace, type HeaderLookup, headerLookup, traceIdOf } from './call-trace.js';

type Reply = RateLimitResponse | Refusal;
type Handled = Reply | Promise<Reply>;

/**
 * Returns the gRPC handler of ShouldRateLimit. {@link ReplyEncoder} accepts its replies. `instrumentation` is undefined
 * if neither logs nor traces need it.
 */
export function unaryHandler(
  service: Pick<ShouldRateLimit, 'handle'>,
  metrics: Metrics,
  instrumentation: CallInstrumentation | undefined,
): UnaryHandler<Reply> {
  const calls = metrics.reference.durations('ShouldRateLimit');
  return (bytes, call, start, end) => {
    calls.began();
    return instrumentation === undefined
      ? service.handle(bytes, call, start, end)
      : instrumentation.handle(call, (caller) => service.handle(bytes, caller, start, end));
  };
}

/** Encodes replies. Turns refusals into gRPC statuses, and counts and times each call. */
export class ReplyEncoder extends ResponseEncoder implements MessageEncoder<Reply> {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #calls: ReturnType<Metrics['reference']['durations']>;

  constructor(metrics: Metrics, clock: Clock) {
    super();
    this.#metrics = metrics;
    this.#clock = clock;
    this.#calls = metrics.reference.durations('ShouldRateLimit');
  }

  /** The clock is read once for all requests that arrived together, and once for each answer. */
  accept(reply: Reply, { receivedMicros }: Pick<ServerCall, 'receivedMicros'>): void {
    const micros = this.#clock.monotonicMicros() - receivedMicros;
    this.#metrics.requestSeconds.observe(micros / 1e6);
    this.#calls.ended(micros);
    if (!(reply instanceof Refusal)) return;
    const code = reply.kind === 'bad_request' ? 'INVALID_ARGUMENT' : 'UNAVAILABLE';
    this.#metrics.refused(code);
    throw new GrpcError(STATUS[code], reply.message);
  }
}

/**
 * Returns a function that decides requests that did not arrive over gRPC. The HTTP endpoint counts these calls itself.
 */
export function decideForHttp(
  service: Pick<ShouldRateLimit, 'decide'>,
  clock: Clock,
  instrumentation: CallInstrumentation | undefined,
): Decide {
  return (request, timeoutMicros, { connection, cancelled, headers }) => {
    const deadlineMicros = clock.monotonicMicros() + timeoutMicros;
    const caller = { deadlineMicros, connection, cancelled };
    if (instrumentation === undefined) return service.decide(request, caller);
    const decide = (named: Caller) => service.decide(request, named);
    return instrumentation.handleHttp(caller, headerLookup(headers), decide);
  };
}

const NO_TRACE: CallTrace = { traceId: '', ended: () => {} };

/** Passes calls to the service, together with the request name and the trace that logs and spans need. */
export class CallInstrumentation {
  /** Numbers of connections, and of their requests so far. */
  readonly #connections = new WeakMap<object, { readonly number: number; requests: number }>();
  #connectionCount = 0;
  readonly #readsTraceIds: boolean;
  readonly #tracing: OtlpTracing | undefined;

  /** @param readsTraceIds whether trace IDs are read from headers even if `tracing` is undefined */
  constructor(readsTraceIds: boolean, tracing: OtlpTracing | undefined) {
    this.#readsTraceIds = readsTraceIds;
    this.#tracing = tracing;
  }

  /** Decides a gRPC call with `decide`. */
  handle(call: ServerCall, decide: (caller: Caller) => Handled): Handled {
    const { connection, deadlineMicros, requestId } = call;
    const trace = this.#traceOf(
      (name) => call.header(name),
      () => call.peer,
    );
    const requestName = requestId ?? this.#nameOf(connection);
    const caller = new ForwardingCaller(call, { connection, deadlineMicros, requestName, trace });
    return traced(trace, () => decide(caller));
  }

  /** Decides a call that arrived over HTTP with `decide`. */
  handleHttp(caller: Caller, header: HeaderLookup, decide: (caller: Caller) => Handled): Handled {
    const requestName = header('x-request-id') ?? this.#nameOf(Object(caller.connection));
    const trace = this.#traceOf(header, undefined);
    return traced(trace, () => decide({ requestName, trace, ...caller }));
  }

  /**
   * Names a request that has no `x-request-id`, so that its log lines can be found: the number of the connection and
   * the number of the request on it, such as `3.17`. Both count from 1 in each process.
   */
  #nameOf(connection: object): string {
    const named = this.#connections.get(connection) ?? { number: ++this.#connectionCount, requests: 0 };
    this.#connections.set(connection, named);
    return `${named.number}.${++named.requests}`;
  }

  #traceOf(header: HeaderLookup, peer: (() => string) | undefined): CallTrace {
    if (this.#tracing !== undefined) return this.#tracing.begin(header, peer);
    const traceId = this.#readsTraceIds ? traceIdOf(header) : '';
    return traceId === '' ? NO_TRACE : { ...NO_TRACE, traceId };
  }
}

function traced(trace: CallTrace, decide: () => Handled): Handled {
  const told = (result: Reply): Reply => {
    trace.ended(result);
    return result;
  };
  const failed = (error: unknown): never => {
    trace.ended(error instanceof Error ? error : new Error(String(error)));
    throw error;
  };
  let result: Handled;
  try {
    result = decide();
  } catch (error) {
    return failed(error);
  }
  return result instanceof Promise ? result.then(told, failed) : told(result);
}
