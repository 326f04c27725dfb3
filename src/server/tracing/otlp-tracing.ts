import { randomUUID } from 'node:crypto';
import {
  type Context,
  DiagLogLevel,
  diag,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  type TextMapGetter,
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
  type Span,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { type HeaderLookup, MAX_TRACE_HEADER } from '../calls/trace-id.js';
import type { CallTrace, SpanLosses, Tracing } from '../calls/tracing.js';
import { OtlpTrace, type StoreAddress } from './otlp-trace.js';
import { MAX_PENDING_EXPORTS, MAX_QUEUED_SPANS, MAX_SPAN_TEXT, SPANS_PER_BATCH } from './tracing-bounds.js';

/** Options of {@link OtlpTracing}. */
export interface OtlpOptions {
  readonly protocol: 'http' | 'grpc';
  readonly serviceName: string;
  readonly serviceNamespace: string;
  /** '' for a random UUID. */
  readonly serviceInstanceId: string;
  /** Fraction of traces started by weir that are recorded, from 0 to 1. */
  readonly samplingRate: number;
  readonly version: string;
  /** Returns the address of the store; undefined if buckets are in memory. */
  readonly store: (() => StoreAddress) | undefined;
  readonly listener: ExportListener;
  /** Called with a sentence about each OpenTelemetry variable that is invalid. */
  onWarning(text: string): void;
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
export class OtlpTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #spans: BoundedSpans;
  readonly #tracer: ReturnType<TracerProvider['getTracer']>;
  readonly #store: OtlpOptions['store'];
  /** B3 headers take precedence over W3C headers, as in envoyproxy/ratelimit. */
  readonly #propagator = new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new B3Propagator(), new W3CBaggagePropagator()],
  });

  /** Throws what OpenTelemetry's exporters throw for invalid variables. */
  constructor(options: OtlpOptions) {
    this.#store = options.store;
    this.#spans = new BoundedSpans(exporterOf(options), options.listener);
    const { serviceName, serviceNamespace, serviceInstanceId, samplingRate, version } = options;
    const service = resourceFromAttributes({
      'service.name': serviceName,
      ...(serviceNamespace !== '' && { 'service.namespace': serviceNamespace }),
      'service.instance.id': serviceInstanceId === '' ? randomUUID() : serviceInstanceId,
      'service.version': version,
    });
    this.#provider = new TracerProvider({
      resource: defaultResource().merge(service),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplingRate) }),
      spanLimits: { attributeValueLengthLimit: MAX_SPAN_TEXT },
      spanProcessors: [this.#spans],
    });
    this.#tracer = this.#provider.getTracer('weir', version, { schemaUrl: SCHEMA_URL });
  }

  begin(header: HeaderLookup, peer: (() => string) | undefined): CallTrace {
    const parent: Context = this.#propagator.extract(ROOT_CONTEXT, header, GETTER);
    const { name, attributes } = peer === undefined ? OtlpTrace.JSON_CALL : OtlpTrace.GRPC_CALL;
    const span = this.#tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
    if (span.isRecording()) return new OtlpTrace(this.#tracer, span, parent, peer, this.#store);
    const caller = trace.getSpanContext(parent);
    const known = caller !== undefined && isSpanContextValid(caller);
    return { traceId: known ? caller.traceId : '', ended: () => {} };
  }

  lost(): SpanLosses {
    return this.#spans.lost;
  }

  /** Sends the queued spans. Resolves when they are accepted or lost; rejects if the collector accepts nothing. */
  shutdown(): Promise<void> {
    return this.#provider.shutdown();
  }
}

/** Creates the exporter. Its constructor reads its variables, and reports invalid ones to `diag`. */
function exporterOf({ protocol, onWarning }: OtlpOptions): SpanExporter {
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

/** Receives the results of exports. */
interface ExportListener {
  /** Called when the collector accepts spans. */
  taken(): void;
  /** Called when the collector does not accept spans. */
  failed(error: Error | undefined): void;
}

/**
 * Sends spans to a collector in batches, with OpenTelemetry's BatchSpanProcessor, and counts lost spans. Requests never
 * wait for the collector. While it hangs or is unavailable, at most {@link MAX_QUEUED_SPANS} spans are queued.
 */
class BoundedSpans implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #lost = { queue: 0, export: 0 };
  #queued = 0;

  constructor(exporter: SpanExporter, listener: ExportListener) {
    const counting: SpanExporter = {
      export: (spans, done) => {
        this.#queued -= spans.length;
        const settle = (result: ExportResult): void => {
          if (result.code === ExportResultCode.SUCCESS) {
            listener.taken();
          } else {
            this.#lost.export += spans.length;
            listener.failed(result.error);
          }
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

  onStart(_span: Span): void {}

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
