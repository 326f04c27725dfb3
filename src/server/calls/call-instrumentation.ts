import type { CallInfo } from '../../grpc/grpc-server.js';
import type { Caller } from '../../service/caller.js';
import type { Refusal } from '../../service/refusal.js';
import { type HeaderLookup, traceIdOf } from './trace-id.js';
import type { Answer, CallTrace, Tracing } from './tracing.js';

type Handled<A extends Answer> = A | Refusal | Promise<A | Refusal>;

/** What decides requests in one of their forms: as bytes, or decoded. */
export interface MessageHandler<Message, A extends Answer> {
  handle(message: Message, caller: Caller): Handled<A>;
}

const NO_TRACE: CallTrace = { traceId: '', ended: () => {} };

/** A connection, as far as names of its requests need it. */
interface Named {
  readonly number: number;
  requests: number;
}

/**
 * Names requests for logs, so that it can be seen which lines are of one, where they have no `x-request-id`: by the
 * number of the connection and of the request on it, as in `3.17`. Both count from 1 in each process.
 */
class RequestNames {
  readonly #connections = new WeakMap<object, Named>();
  #count = 0;

  /** The name of the next request of a connection. */
  next(connection: object): string {
    let named = this.#connections.get(connection);
    if (named === undefined) {
      named = { number: ++this.#count, requests: 0 };
      this.#connections.set(connection, named);
    }
    return `${named.number}.${++named.requests}`;
  }
}

/**
 * Hands calls to the service, and tells it of their callers what logs and traces want to know: how a request is named,
 * and which trace it belongs to.
 */
export class CallInstrumentation {
  readonly #names = new RequestNames();
  readonly #readsTraceIds: boolean;
  readonly #tracing: Tracing | undefined;

  /** `readsTraceIds`: traces are wanted even where `tracing` is off. */
  constructor(readsTraceIds: boolean, tracing: Tracing | undefined) {
    this.#readsTraceIds = readsTraceIds;
    this.#tracing = tracing;
  }

  /** Has `service` decide a gRPC call. */
  handle<Message, A extends Answer>(
    service: MessageHandler<Message, A>,
    message: Message,
    call: CallInfo,
  ): Handled<A> {
    const { connection, deadlineMicros, requestId } = call;
    const trace = this.#traceOf(
      (name) => call.header(name),
      () => call.peer,
    );
    return this.#handle(service, message, trace, {
      connection,
      deadlineMicros,
      cancelled: () => call.cancelled(),
      requestName: requestId ?? this.#names.next(connection),
      trace,
    });
  }

  /** The same for a caller that does not come by gRPC. */
  handleHttp<Message, A extends Answer>(
    service: MessageHandler<Message, A>,
    message: Message,
    caller: Caller,
    header: HeaderLookup,
  ): Handled<A> {
    const requestName = header('x-request-id') ?? this.#names.next(Object(caller.connection));
    const trace = this.#traceOf(header, undefined);
    return this.#handle(service, message, trace, { requestName, trace, ...caller });
  }

  #handle<Message, A extends Answer>(
    service: MessageHandler<Message, A>,
    message: Message,
    trace: CallTrace,
    caller: Caller,
  ): Handled<A> {
    const told = (result: A | Refusal): A | Refusal => {
      trace.ended(result);
      return result;
    };
    const failed = (error: unknown): never => {
      trace.ended(error instanceof Error ? error : new Error(String(error)));
      throw error;
    };
    let result: Handled<A>;
    try {
      result = service.handle(message, caller);
    } catch (error) {
      return failed(error);
    }
    return result instanceof Promise ? result.then(told, failed) : told(result);
  }

  #traceOf(header: HeaderLookup, peer: (() => string) | undefined): CallTrace {
    if (this.#tracing !== undefined) return this.#tracing.begin(header, peer);
    const traceId = this.#readsTraceIds ? traceIdOf(header) : '';
    return traceId === '' ? NO_TRACE : { ...NO_TRACE, traceId };
  }
}
