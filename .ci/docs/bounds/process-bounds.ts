import { MAX_TOP_ENTRIES, MAX_TOP_TEXTS } from '../../../src/admin/top/top-counts.js';
import { MAX_TOP_LIMIT } from '../../../src/admin/top/top-question.js';
import { MAX_TOP_WAITING } from '../../../src/admin/top/top-service.js';
import { MAX_EMPTY_BYTES } from '../../../src/bounded-grpc-calls.js';
import { MAX_BODY_PIECES, MAX_INFORMATIONAL } from '../../../src/bounded-request.js';
import { MAX_MESSAGES_PER_SECOND } from '../../../src/config/xds/ads-stream.js';
import { MAX_CONNECTIONS, REQUEST_TIMEOUT_MS } from '../../../src/http/http.js';
import { UNREAD_MS } from '../../../src/http/http-connections.js';
import { READING_MS } from '../../../src/http/http-read-scheduler.js';
import { BODY_LIMITS } from '../../../src/http/request-bodies.js';
import { MAX_HELD_BYTES } from '../../../src/http/views/outgoing-texts.js';
import { RETENTION_MS } from '../../../src/http/views/page-buffer-pool.js';
import { SLICE_MS } from '../../../src/http/views/view-slices.js';
import { MAX_LINE_CHARACTERS } from '../../../src/server/decision-log/decision-line.js';
import {
  FLUSH_TIMEOUT_MS,
  MAX_PENDING_EXPORTS,
  MAX_QUEUED_SPANS,
  SPANS_PER_BATCH,
} from '../../../src/server/tracing/tracing-bounds.js';
import { CALL_BOUNDS } from '../../../src/server/workers/calls.js';
import { LATE_AFTER_MS, SILENT_AFTER_MS } from '../../../src/server/workers/heartbeat.js';
import {
  REPLACE_AFTER_MS,
  REPLACE_ALL_SILENT_AFTER_MS,
} from '../../../src/server/workers/worker-watchdog.js';
import { MAX_RECORDED_DESCRIPTORS, MAX_RECORDED_ENTRIES } from '../../../src/service/record/record-of.js';
import { MAX_QUEUED_BYTES, MAX_QUEUED_JOBS } from '../../../src/service/turn-queue.js';
import { MAX_WAITING_BYTES } from '../../../src/telemetry/log-output.js';
import { MAX_RECEIVED_BYTES, STALLED_MS } from '../../../src/telemetry/statsd/statsd-tcp.js';
import { SAMPLES_PER_SECOND } from '../../../src/telemetry/top/hit-sampler.js';
import { SLICES } from '../../../src/telemetry/top/sliding-heavy-hitters.js';
import {
  type BoundGroup,
  CONNECTION_ENDS,
  IS_THROTTLED,
  shownCount,
  shownSetting,
  shownSize,
  shownTime,
} from './bound-texts.js';

/** Bounds of a process and its workers. */
export const PROCESS_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'All callers together, in each process',
    bounds: [
      {
        what: 'gRPC connections',
        bound: shownSetting('GRPC_MAX_CONNECTIONS'),
        beyond: 'weir closes further connections immediately; the log counts them',
      },
      {
        what: 'memory of gRPC connections: incomplete requests, open calls, unread answers',
        bound: `${shownSetting('GRPC_MAX_BUFFERED_BYTES', shownSize)} (\`h2\` only)`,
        beyond: 'weir closes the connection that uses the most memory',
      },
      {
        what: 'requests that wait for their turn',
        bound: `${shownCount(MAX_QUEUED_JOBS)} requests, with ${shownSize(MAX_QUEUED_BYTES)} of messages`,
        beyond: `${IS_THROTTLED}. \`weir_requests_given_up_total\` counts these requests.`,
      },
      {
        what: 'connections of an HTTP port',
        bound: shownCount(MAX_CONNECTIONS),
        beyond: 'weir closes the connection that has been idle longest',
      },
      {
        what: 'concurrent requests on an HTTP connection',
        bound: '1',
        beyond: 'further requests wait',
      },
      {
        what: 'time in which a client must send an HTTP request; time for which a client does not read the answer',
        bound: `${shownTime(REQUEST_TIMEOUT_MS)}; ${shownTime(UNREAD_MS)}`,
        beyond: `408; ${CONNECTION_ENDS}`,
      },
      {
        what: 'work for all connections of an HTTP port: reading requests and answering short requests',
        bound: `${shownTime(READING_MS)} in each event-loop turn`,
        beyond: 'unread data stays in the socket until the next turn',
      },
      {
        what: 'total size of `/json` bodies; number of `/json` calls',
        bound: `${shownSize(BODY_LIMITS.maxHeldBytes)}, or one larger body; ${shownCount(BODY_LIMITS.maxCalls)}`,
        beyond: '503',
      },
      {
        what: 'time for which a `/json` body over 4 KiB waits for its turn',
        bound: 'the `grpc-timeout` header; without this header, no limit as long as the queue is not full',
        beyond: '503 instead of a decision, because weir has not decoded the domain yet',
      },
      {
        what: 'rendering of `/metrics`, `/stats`, `/rlconfig`, `/healthcheck?detail`, statsd and dogstatsd',
        bound: `${shownTime(SLICE_MS)} in each event-loop turn`,
        beyond:
          'the next turn renders the rest; requests that arrive during a rendering share the result of ' +
          'the next rendering',
      },
      {
        what: 'rendered text that clients have not read yet',
        bound:
          `${shownSize(MAX_HELD_BYTES)}, or one larger text; weir keeps the memory of one text per ` +
          `endpoint for up to ${shownTime(RETENTION_MS)}`,
        beyond: 'weir closes the connections that read the oldest text',
      },
      {
        what: 'unread log lines',
        bound: shownSize(MAX_WAITING_BYTES),
        beyond:
          'weir drops lines, counts them in `weir_log_lines_dropped_total`, and marks the gap in the log',
      },
      {
        what: 'trace spans that wait for the collector; time for which weir waits for the collector at exit',
        bound:
          `${shownCount(MAX_QUEUED_SPANS)}, plus ${shownCount(MAX_PENDING_EXPORTS)} unanswered messages ` +
          `with ${SPANS_PER_BATCH} spans each; ${shownTime(FLUSH_TIMEOUT_MS)}`,
        beyond: 'weir drops spans, and counts them in `weir_trace_spans_dropped_total`',
      },
      {
        what: 'duration of a trace export',
        bound: '`OTEL_EXPORTER_OTLP_TIMEOUT`, including retries',
        beyond: CONNECTION_ENDS,
      },
      {
        what:
          'answer from a trace collector or management server: informational responses (1xx); chunks of ' +
          'an HTTP/1.1 body',
        bound: `${MAX_INFORMATIONAL}; ${shownCount(MAX_BODY_PIECES)}`,
        beyond: CONNECTION_ENDS,
      },
      {
        what:
          'size of gRPC frames that a trace collector or management server sends and that contain no ' +
          'message; messages from a management server',
        bound: `${shownSize(MAX_EMPTY_BYTES)} per second; ${MAX_MESSAGES_PER_SECOND} per second`,
        beyond: CONNECTION_ENDS,
      },
      {
        what:
          'data that a statsd collector sends to weir on a connection; time in which the collector must ' +
          'accept 128 KiB of lines',
        bound: `${shownSize(MAX_RECEIVED_BYTES)}; ${shownTime(STALLED_MS)}`,
        beyond: 'weir closes the connection and reconnects',
      },
      {
        what: 'content of a line in the sampled decision log; size of all unread lines',
        bound:
          `${shownCount(MAX_RECORDED_DESCRIPTORS)} descriptors with ${shownCount(MAX_RECORDED_ENTRIES)} entries ` +
          `each, ${shownSize(MAX_LINE_CHARACTERS)}; ${shownSize(MAX_WAITING_BYTES)}`,
        beyond:
          'weir shortens and marks the line; weir drops lines, and counts them in ' +
          '`weir_decision_log_lines_dropped_total`',
      },
      {
        what: 'metric series',
        bound: shownSetting('METRICS_MAX_SERIES'),
        beyond: 'weir counts further rules and domains as `other`',
      },
      {
        what: 'buckets that `weir top` tracks for the last minute and hour',
        bound:
          `${shownSetting('TOP_BUCKETS')} in each of ${2 * 2 * SLICES} time slices, twice as many in the ` +
          `newest slice; ${MAX_TOP_ENTRIES} entries and ${MAX_TOP_TEXTS} characters per bucket`,
        beyond:
          'weir omits the buckets with the fewest requests, and shows the maximum error of each estimate',
      },
      {
        what: 'decisions that `weir top` counts',
        bound: `about ${shownCount(SAMPLES_PER_SECOND)} denials and as many other decisions per second`,
        beyond: 'weir counts only one of every 2, 4, 8, … decisions, and multiplies the count by that number',
      },
      {
        what: 'concurrent requests to `/top`; buckets in an answer',
        bound: `1 running and ${MAX_TOP_WAITING} waiting; ${shownCount(MAX_TOP_LIMIT)}`,
        beyond: '503; 400',
      },
      {
        what: 'series of `weir_bucket_used_ratio`',
        bound: shownSetting('BUCKET_USED_RATIO_TOP'),
        beyond: 'buckets with fewer requests have no series',
      },
      {
        what: 'buckets in memory',
        bound:
          `${shownSetting('MEMORY_MAX_BUCKETS')}; ${shownSetting('MEMORY_MAX_BYTES', shownSize)}, plus up to 6 ` +
          'MB of unused memory',
        beyond: 'weir evicts the bucket that will be full soonest',
      },
    ],
  },
  {
    title: 'Workers (WORKERS)',
    bounds: [
      {
        what: 'time for which a new connection waits for a worker that does not answer',
        bound: shownTime(LATE_AFTER_MS),
        beyond: 'another worker gets the connection',
      },
      {
        what: 'time for which a worker does not answer',
        bound:
          `${shownTime(SILENT_AFTER_MS)}; ${shownTime(REPLACE_AFTER_MS)}, or ` +
          `${shownTime(REPLACE_ALL_SILENT_AFTER_MS)} if no worker answers`,
        beyond: 'the worker gets no new connections; weir replaces workers one at a time',
      },
      {
        what: '`/json` calls that wait for workers',
        bound: shownCount(CALL_BOUNDS.decide.maxPending),
        beyond: '503',
      },
    ],
  },
];
