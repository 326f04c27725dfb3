import type { CallInfo } from '../../grpc/grpc-server.js';
import type { Caller } from '../../service/costly-requests.js';
import type { Refusal } from '../../service/refusal.js';
import type { ShouldRateLimit } from '../../service/should-rate-limit.js';
import type { CallTrace, Tracing } from './call-trace.js';
import { RequestNames } from './request-names.js';
import { type HeaderOf, traceIdOf } from './trace-id.js';

type Handled = ReturnType<ShouldRateLimit['handle']>;

const NO_TRACE: CallTrace = { traceId: '', ended: () => {} };

/**
 * Hands calls to the service, and tells it of their callers what logs and traces want to know: how a request is named,
 * and which trace it belongs to.
 */
export class Callers {
  readonly #service: Pick<ShouldRateLimit, 'handle'>;
  readonly #names = new RequestNames();
  readonly #readsTraces: boolean;
  readonly #tracing: Tracing | undefined;

  /** `readsTraces`: traces are wanted even where `tracing` is off. */
  constructor(service: Pick<ShouldRateLimit, 'handle'>, readsTraces: boolean, tracing: Tracing | undefined) {
    this.#service = service;
    this.#readsTraces = readsTraces;
    this.#tracing = tracing;
  }

  /** {@link ShouldRateLimit.handle} for a gRPC call. */
  handle(message: Uint8Array, call: CallInfo): Handled {
    const { connection, deadlineMicros, requestId } = call;
    const trace = this.#traceOf(
      (name) => call.header(name),
      () => call.peer,
    );
    return this.#handle(message, trace, {
      connection,
      deadlineMicros,
      cancelled: () => call.cancelled(),
      requestName: requestId ?? this.#names.next(connection),
      trace,
    });
  }

  /** The same for a caller that does not come by gRPC. */
  handleBeside(message: Uint8Array, caller: Caller, header: HeaderOf): Handled {
    const requestName = header('x-request-id') ?? this.#names.next(Object(caller.connection));
    const trace = this.#traceOf(header, undefined);
    return this.#handle(message, trace, { requestName, trace, ...caller });
  }

  #handle(message: Uint8Array, trace: CallTrace, caller: Caller): Handled {
    const told = <T extends Uint8Array | Refusal>(result: T): T => {
      trace.ended(result);
      return result;
    };
    const failed = (error: unknown): never => {
      trace.ended(error instanceof Error ? error : new Error(String(error)));
      throw error;
    };
    let result: Handled;
    try {
      result = this.#service.handle(message, caller);
    } catch (error) {
      return failed(error);
    }
    return result instanceof Promise ? result.then(told, failed) : told(result);
  }

  #traceOf(header: HeaderOf, peer: (() => string) | undefined): CallTrace {
    if (this.#tracing !== undefined) return this.#tracing.begin(header, peer);
    const traceId = this.#readsTraces ? traceIdOf(header) : '';
    return traceId === '' ? NO_TRACE : { ...NO_TRACE, traceId };
  }
}
