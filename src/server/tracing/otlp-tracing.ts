import { randomUUID } from 'node:crypto';
import {
  type Context,
  DiagLogLevel,
  diag,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import {
  CompositePropagator,
  type ExportResult,
  ExportResultCode,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import { B3Propagator } from '@opentelemetry/propagator-b3';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  type Span as StartedSpan,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { SHOULD_RATE_LIMIT_PATH } from '../../codec/rls-definition.js';
import type { StorageError } from '../../limiter/bucket-store.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { shown } from '../../runtime/texts.js';
import type { HoldEvent, UndecidedReason } from '../../service/record/decision-record.js';
import type { DecisionSpan, StoreSpan } from '../../service/record/request-trace.js';
import { Refusal } from '../../service/refusal.js';
import type { Logger } from '../../telemetry/logger.js';
import {
  type CallOutcome,
  type CallTrace,
  type HeaderLookup,
  MAX_TRACE_HEADER,
  type SpanLosses,
} from '../calls/call-trace.js';
import type { Settings } from '../settings/settings-table.js';
import type { Store } from '../store/store.js';

/** Maximum number of ended spans that wait to be sent. Further ones are lost and counted. */
export const MAX_QUEUED_SPANS = 2048;
/** Number of spans in one message, which takes less than a millisecond to encode. */
export const SPANS_PER_BATCH = 64;
/** Maximum number of messages that the collector has not answered. */
export const MAX_PENDING_EXPORTS = 40;
/** Maximum number of characters of a string in a span. */
const MAX_SPAN_TEXT = 256;

export interface TracingParts {
  readonly settings: Settings;
  readonly version: string;
  readonly log: Logger;
  readonly store: Pick<Store, 'nodes'>;
}

/** Semantic conventions that define the names of attributes. */
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.40.0';

/** gRPC and Node.js's HTTP/1 provide header names in lowercase. */
const GETTER: TextMapGetter<HeaderLookup> = {
  get(header, name) {
    const value = header(name.toLowerCase());
    return value === undefined || value.length > MAX_TRACE_HEADER ? undefined : value;
  },
  keys: () => [],
};

/** Records traces and sends them to the OpenTelemetry collector that OTEL_EXPORTER_OTLP_* select. */
export class OtlpTracing {
  readonly #provider: TracerProvider;
  readonly #spans: BoundedSpans;
  readonly #tracer: ReturnType<TracerProvider['getTracer']>;
  /** Returns the address of the store; undefined if buckets are in memory. */
  readonly #store: (() => StoreAddress) | undefined;
  /** B3 headers take precedence over W3C headers, as in envoyproxy/ratelimit. */
  readonly #propagator = new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new B3Propagator(), new W3CBaggagePropagator()],
  });

  /** Throws what OpenTelemetry's exporters throw for invalid variables. */
  constructor({ settings, version, log, store }: TracingParts) {
    this.#store = settings.redisUrl === '' ? undefined : () => addressOf(store);
    this.#spans = new BoundedSpans(exporterOf(settings.tracingExporterProtocol, log), log);
    const { tracingServiceName, tracingServiceNamespace, tracingServiceInstanceId } = settings;
    const service = resourceFromAttributes({
      'service.name': tracingServiceName,
      ...(tracingServiceNamespace !== '' && { 'service.namespace': tracingServiceNamespace }),
      'service.instance.id': tracingServiceInstanceId === '' ? randomUUID() : tracingServiceInstanceId,
      'service.version': version,
    });
    const samplingRate = Math.min(1, settings.tracingSamplingRate);
    this.#provider = new TracerProvider({
      resource: defaultResource().merge(service),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplingRate) }),
      spanLimits: { attributeValueLengthLimit: MAX_SPAN_TEXT },
      spanProcessors: [this.#spans],
    });
    this.#tracer = this.#provider.getTracer('weir', version, { schemaUrl: SCHEMA_URL });
  }

  /**
   * Starts the trace of a call. `peer` returns the caller's address as `host:port`, and is called only if the trace is
   * recorded. It is undefined for `/json`.
   */
  begin(header: HeaderLookup, peer: (() => string) | undefined): CallTrace {
    const parent: Context = this.#propagator.extract(ROOT_CONTEXT, header, GETTER);
    const { name, attributes } = peer === undefined ? OtlpTrace.JSON_CALL : OtlpTrace.GRPC_CALL;
    const span = this.#tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
    if (span.isRecording()) return new OtlpTrace(this.#tracer, span, parent, peer, this.#store);
    const caller = trace.getSpanContext(parent);
    const known = caller !== undefined && isSpanContextValid(caller);
    return { traceId: known ? caller.traceId : '', ended: () => {} };
  }

  /** Number of spans lost since the start, by reason. */
  get lost(): SpanLosses {
    return this.#spans.lost;
  }

  /** Sends the queued spans. Resolves when they are accepted or lost; rejects if the collector accepts nothing. */
  shutdown(): Promise<void> {
    return this.#provider.shutdown();
  }
}

/** Creates the exporter. Its constructor reads its variables, and reports invalid ones to `diag`. */
function exporterOf(protocol: 'http' | 'grpc', log: Logger): SpanExporter {
  const onWarning = (text: string): void => log.warn(`OTEL_EXPORTER_OTLP_*: ${withoutAddressSecrets(text)}`);
  const ignore = (): void => {};
  const logger = { error: onWarning, warn: onWarning, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  try {
    // Only the selected exporter is loaded, because each is large.
    if (protocol === 'grpc') {
      const { OTLPTraceExporter } =
        require('@opentelemetry/exporter-trace-otlp-grpc') as typeof import('@opentelemetry/exporter-trace-otlp-grpc');
      return new OTLPTraceExporter({ concurrencyLimit: MAX_PENDING_EXPORTS });
    }
    const { OTLPTraceExporter } =
      require('@opentelemetry/exporter-trace-otlp-proto') as typeof import('@opentelemetry/exporter-trace-otlp-proto');
    return new OTLPTraceExporter({ concurrencyLimit: MAX_PENDING_EXPORTS });
  } finally {
    diag.disable();
  }
}

/** Milliseconds that spans wait for others, to be sent in one batch. */
const BATCH_DELAY_MS = 1000;
/** Maximum milliseconds of an export, whatever OTEL_EXPORTER_OTLP_TIMEOUT says. */
const EXPORT_TIMEOUT_MS = 30_000;
const SAMPLED = 1;

/**
 * Sends spans to a collector in batches, with OpenTelemetry's BatchSpanProcessor, and counts lost spans. Requests never
 * wait for the collector. While it hangs or is unavailable, at most {@link MAX_QUEUED_SPANS} spans are queued.
 */
class BoundedSpans implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #lost = { queue: 0, export: 0 };
  #queued = 0;

  /** Whether the log says that the collector does not accept spans. */
  #failing = false;

  constructor(exporter: SpanExporter, log: Logger) {
    const counting: SpanExporter = {
      export: (spans, done) => {
        this.#queued -= spans.length;
        const settle = (result: ExportResult): void => {
          const isLost = result.code !== ExportResultCode.SUCCESS;
          if (isLost) this.#lost.export += spans.length;
          if (isLost && !this.#failing) log.warn({ reason: reasonOf(result.error) }, COLLECTOR_FAILS);
          if (!isLost && this.#failing) log.info('the OpenTelemetry collector accepts spans again');
          this.#failing = isLost;
          done(result);
        };
        exporter.export(spans, settle);
      },
      shutdown: () => exporter.shutdown(),
    };
    this.#batches = new BatchSpanProcessor({
      exporter: counting,
      maxExportBatchSize: SPANS_PER_BATCH,
      // This class limits the queue itself, so that it can count lost spans. The processor's limit is never reached.
      maxQueueSize: MAX_QUEUED_SPANS + SPANS_PER_BATCH,
      scheduledDelayMillis: BATCH_DELAY_MS,
      exportTimeoutMillis: EXPORT_TIMEOUT_MS,
    });
  }

  /** See {@link SpanLosses}. */
  get lost(): SpanLosses {
    return this.#lost;
  }

  onStart(_span: StartedSpan): void {}

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & SAMPLED) === 0) return;
    if (this.#queued >= MAX_QUEUED_SPANS) {
      this.#lost.queue++;
      return;
    }
    this.#queued++;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }
}

const COLLECTOR_FAILS =
  'the OpenTelemetry collector does not accept spans, so weir drops them; check OTEL_EXPORTER_OTLP_ENDPOINT, which ' +
  'is a URL such as http://collector:4318';

function reasonOf(error: Error | undefined): string {
  const { message = '', code } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  return shown(
    withoutAddressSecrets(message === '' ? String(code ?? error?.name ?? 'no reason given') : message),
  );
}

/** Returns the address of Redis, or an empty object if there are several servers. */
function addressOf(store: Pick<Store, 'nodes'>): StoreAddress {
  const [only, ...others] = store.nodes();
  if (only === undefined || others.length > 0) return {};
  const [, host, port] = /^(?:rediss?:\/\/)?(.*):(\d+)$/.exec(only.name) ?? [];
  return host === undefined ? { host: only.name } : { host, port: Number(port) };
}

/** Address of a Redis. `host` is undefined if a call may go to several servers. */
interface StoreAddress {
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
class OtlpTrace implements CallTrace, DecisionSpan {
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
