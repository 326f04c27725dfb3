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

/** Milliseconds that spans wait for others, to be sent in one batch. */
const BATCH_DELAY_MS = 1000;
/** Maximum milliseconds of an export, whatever OTEL_EXPORTER_OTLP_TIMEOUT says. */
const EXPORT_TIMEOUT_MS = 30_000;
const SAMPLED = 1;

/** Receives the results of exports. */
export interface ExportListener {
  /** Called when the collector accepts spans. */
  taken(): void;
  /** Called when the collector does not accept spans. */
  failed(error: Error | undefined): void;
}

/**
 * Sends spans to a collector in batches, with OpenTelemetry's BatchSpanProcessor, and counts lost spans. Requests never
 * wait for the collector. While it hangs or is unavailable, at most {@link MAX_QUEUED_SPANS} spans are queued.
 */
export class BoundedSpans implements SpanProcessor {
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
