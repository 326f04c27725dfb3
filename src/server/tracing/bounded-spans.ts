import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type Span,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';
import type { SpanLosses } from '../calls/tracing.js';
import { MAX_QUEUED_SPANS, SPANS_PER_BATCH } from './tracing-bounds.js';

/** How long spans wait for others to be sent with them. */
const BATCH_DELAY_MS = 1000;
/** How long sending some may take, whatever OTEL_EXPORTER_OTLP_TIMEOUT says. */
const EXPORT_TIMEOUT_MS = 30_000;
const SAMPLED = 1;

/** Told of what becomes of the collector, as it changes. */
export interface ExportListener {
  /** Spans were taken, the first since the start or since they were not. */
  taken(): void;
  /** Spans were not taken. */
  failed(error: Error | undefined): void;
}

/**
 * Sends spans to a collector, some at a time, as OpenTelemetry's BatchSpanProcessor does, and knows which were lost:
 * nobody waits for the collector, and while it hangs or is away no more than {@link MAX_QUEUED_SPANS} wait.
 */
export class BoundedSpans implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #lost = { queue: 0, export: 0 };
  #queued = 0;

  /** `begin` is called as each export begins. */
  constructor(exporter: SpanExporter, listener: ExportListener, begin: () => void) {
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
        begin();
        exporter.export(spans, settle);
      },
      shutdown: () => exporter.shutdown(),
    };
    this.#batches = new BatchSpanProcessor({
      exporter: counting,
      maxExportBatchSize: SPANS_PER_BATCH,
      // What waits is counted here, so that it is known what was lost.
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
