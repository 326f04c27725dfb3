import { type Context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { SHOULD_RATE_LIMIT_PATH } from '../../codec/rls-definition.js';
import type { StorageError } from '../../limiter/bucket-store.js';
import type { HoldEvent, UndecidedReason } from '../../service/record/decision-record.js';
import type { DecisionSpan, StoreSpan } from '../../service/record/request-trace.js';
import { Refusal } from '../../service/refusal.js';
import type { CallOutcome, CallTrace } from '../calls/call-trace.js';

/** Address of a Redis. `host` is undefined if a call may go to several servers. */
export interface StoreAddress {
  readonly host?: string;
  readonly port?: number;
}

/** Name of the method without its leading slash, as in the semantic conventions. */
const METHOD = SHOULD_RATE_LIMIT_PATH.slice(1);
/** Redis command that runs take.lua. */
const COMMAND = 'EVALSHA';

/**
 * The spans of one call: the call itself, and each request to the store. Names follow OpenTelemetry's semantic
 * conventions (for RPC, the release candidate). Names of weir's own attributes start with `weir`.
 */
export class OtlpTrace implements CallTrace, DecisionSpan {
  /** https://opentelemetry.io/docs/specs/semconv/rpc/grpc/ */
  static readonly GRPC_CALL = {
    name: METHOD,
    attributes: { 'rpc.system.name': 'grpc', 'rpc.method': METHOD },
  };
  /** https://opentelemetry.io/docs/specs/semconv/http/http-spans/ */
  static readonly JSON_CALL = {
    name: 'POST /json',
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/json',
      'url.path': '/json',
      'url.scheme': 'http',
    },
  };

  readonly traceId: string;
  readonly span = this;
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #context: Context;
  readonly #isGrpc: boolean;
  readonly #store: (() => StoreAddress) | undefined;
  #overLimit = false;

  constructor(
    tracer: Tracer,
    span: Span,
    parent: Context,
    peer: (() => string) | undefined,
    store: (() => StoreAddress) | undefined,
  ) {
    this.#tracer = tracer;
    this.#span = span;
    this.#context = trace.setSpan(parent, span);
    this.traceId = span.spanContext().traceId;
    this.#isGrpc = peer !== undefined;
    this.#store = store;
    if (peer !== undefined) this.#setPeer(peer());
  }

  decided(
    domain: string,
    code: 'OK' | 'OVER_LIMIT',
    rule: string,
    reason: UndecidedReason | undefined,
    hold: HoldEvent | undefined,
  ): void {
    this.#overLimit = code === 'OVER_LIMIT';
    this.#span.setAttribute('weir.domain', domain);
    this.#span.setAttribute('weir.code', code);
    if (rule !== '') this.#span.setAttribute('weir.rule', rule);
    if (reason !== undefined) this.#span.setAttribute('weir.reason', reason);
    if (hold !== undefined) this.#span.setAttribute('weir.hold', hold);
  }

  storeCalled(limits: number): StoreSpan {
    const span = this.#store === undefined ? this.#memorySpan() : this.#redisSpan(this.#store());
    span.setAttribute('weir.limits', limits);
    return {
      ended(error: StorageError | undefined): void {
        if (error !== undefined) fail(span, error.reason, error);
        span.end();
      },
      // A span that never ends is not exported.
      notCalled: () => this.#span.setAttribute('weir.cached', true),
    };
  }

  ended(outcome: CallOutcome): void {
    const span = this.#span;
    if (outcome instanceof Error) {
      this.#setStatusCode('INTERNAL', 500);
      fail(span, outcome.name, outcome);
    } else if (!(outcome instanceof Refusal)) {
      this.#setStatusCode('OK', this.#overLimit ? 429 : 200);
    } else if (outcome.kind === 'bad_request') {
      // By the conventions, an error of the client is not an error of the server.
      this.#setStatusCode('INVALID_ARGUMENT', 400);
    } else {
      this.#setStatusCode('UNAVAILABLE', 503);
      fail(span, this.#isGrpc ? 'UNAVAILABLE' : '503', { name: 'Refusal', message: outcome.message });
    }
    span.end();
  }

  #memorySpan(): Span {
    return this.#tracer.startSpan('take', { kind: SpanKind.INTERNAL }, this.#context);
  }

  /** https://opentelemetry.io/docs/specs/semconv/db/redis/ */
  #redisSpan({ host, port }: StoreAddress): Span {
    const attributes = {
      'db.system.name': 'redis',
      'db.operation.name': COMMAND,
      ...(host !== undefined && { 'server.address': host }),
      ...(port !== undefined && { 'server.port': port }),
    };
    return this.#tracer.startSpan(COMMAND, { kind: SpanKind.CLIENT, attributes }, this.#context);
  }

  #setStatusCode(grpc: string, http: number): void {
    if (this.#isGrpc) this.#span.setAttribute('rpc.response.status_code', grpc);
    else this.#span.setAttribute('http.response.status_code', http);
  }

  #setPeer(peer: string): void {
    const at = peer.lastIndexOf(':');
    const port = Number(peer.slice(at + 1));
    if (at <= 0 || !Number.isInteger(port)) return;
    this.#span.setAttribute('network.peer.address', peer.slice(0, at).replace(/^\[(.*)\]$/, '$1'));
    this.#span.setAttribute('network.peer.port', port);
  }
}

/** https://opentelemetry.io/docs/specs/semconv/general/recording-errors/ */
function fail(span: Span, type: string, { name, message }: Pick<Error, 'name' | 'message'>): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
  // The stack is omitted, because it describes weir's code and not the error of the caller.
  span.recordException({ name, message });
}
