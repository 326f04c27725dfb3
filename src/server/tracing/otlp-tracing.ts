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
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import { B3Propagator } from '@opentelemetry/propagator-b3';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { boundGrpcCalls } from '../../bounded-grpc-calls.js';
import { type HeaderLookup, MAX_TRACE_HEADER } from '../calls/trace-id.js';
import type { CallTrace, SpanLosses, Tracing } from '../calls/tracing.js';
import { BoundedSpans, type ExportListener } from './bounded-spans.js';
import { limitHttpExports } from './export-deadline.js';
import { OtlpTrace, type StoreAddress } from './otlp-trace.js';
import { MAX_PENDING_EXPORTS, MAX_SPAN_TEXT } from './tracing-bounds.js';

/** What {@link OtlpTracing} is made of. */
export interface OtlpOptions {
  readonly protocol: 'http' | 'grpc';
  readonly serviceName: string;
  readonly serviceNamespace: string;
  /** '': a random UUID. */
  readonly serviceInstanceId: string;
  /** Share of the traces begun here that are recorded, 0 to 1. */
  readonly samplingRate: number;
  readonly version: string;
  /** Where buckets are kept; undefined: in memory. */
  readonly store: (() => StoreAddress) | undefined;
  readonly listener: ExportListener;
  /** Told, in a sentence, of variables of OpenTelemetry that cannot be used. */
  onWarning(text: string): void;
}

/** The conventions that names of attributes are taken from. */
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.40.0';

/** gRPC and HTTP/1 spell headers in lower case. */
const GETTER: TextMapGetter<HeaderLookup> = {
  get(header, name) {
    const value = header(name.toLowerCase());
    return value === undefined || value.length > MAX_TRACE_HEADER ? undefined : value;
  },
  keys: () => [],
};

/** Records traces and sends them to an OpenTelemetry collector, where OTEL_EXPORTER_OTLP_* say. */
export class OtlpTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #spans: BoundedSpans;
  readonly #tracer: ReturnType<TracerProvider['getTracer']>;
  readonly #store: OtlpOptions['store'];
  /** In the order of envoyproxy/ratelimit: B3, where it is there, is taken before W3C's headers. */
  readonly #propagator = new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new B3Propagator(), new W3CBaggagePropagator()],
  });

  /** Throws what OpenTelemetry's exporters throw of variables that they cannot use. */
  constructor(options: OtlpOptions) {
    this.#store = options.store;
    // A call over gRPC has a deadline of its own.
    const begin = options.protocol === 'http' ? limitHttpExports() : () => {};
    this.#spans = new BoundedSpans(exporterOf(options), options.listener, begin);
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

  /** Sends what waits; resolves when that is taken or lost. Rejects where the collector takes nothing. */
  shutdown(): Promise<void> {
    return this.#provider.shutdown();
  }
}

/** The exporter reads its variables while it is made; what it finds wrong with them it says to `diag`. */
function exporterOf({ protocol, onWarning }: OtlpOptions): SpanExporter {
  const ignore = (): void => {};
  const logger = { error: onWarning, warn: onWarning, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  try {
    // Each reads a good deal of code.
    if (protocol === 'grpc') {
      boundGrpcCalls();
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
