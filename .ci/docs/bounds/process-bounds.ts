import { MAX_TOP_ENTRIES, MAX_TOP_TEXTS } from '../../../src/admin/top/top-counts.js';
import { MAX_TOP_LIMIT } from '../../../src/admin/top/top-question.js';
import { MAX_TOP_WAITING } from '../../../src/admin/top/top-service.js';
import { MAX_EMPTY_BYTES } from '../../../src/bounded-grpc-calls.js';
import { MAX_BODY_PIECES, MAX_INFORMATIONAL } from '../../../src/bounded-request.js';
import { MAX_MESSAGES_A_SECOND } from '../../../src/config/xds/ads-stream.js';
import { BODY_LIMITS } from '../../../src/http/body-calls.js';
import { MAX_CONNECTIONS, REQUEST_TIMEOUT_MS } from '../../../src/http/http.js';
import { UNREAD_MS } from '../../../src/http/http-connections.js';
import { READING_MS } from '../../../src/http/http-reads.js';
import { MAX_HELD_BYTES } from '../../../src/http/views/held-texts.js';
import { KEPT_MS } from '../../../src/http/views/page-memory.js';
import { SLICE_MS } from '../../../src/http/views/view-slices.js';
import { MAX_UINT32 } from '../../../src/limiter/rate.js';
import { MAX_LINE_CHARACTERS } from '../../../src/server/decision-log/decision-line.js';
import {
  LAST_SPANS_MS,
  MAX_WAITING_SPANS,
  MESSAGES_AT_ONCE,
  SPANS_AT_ONCE,
} from '../../../src/server/tracing/tracing-bounds.js';
import { CALL_BOUNDS } from '../../../src/server/workers/calls.js';
import { LATE_MS, SILENT_MS } from '../../../src/server/workers/pulse.js';
import { ALL_SILENT_MS, REPLACED_MS } from '../../../src/server/workers/worker-watch.js';
import { MAX_RECORDED_DESCRIPTORS, MAX_RECORDED_ENTRIES } from '../../../src/service/record/record-of.js';
import { MAX_QUEUED_BYTES, MAX_QUEUED_JOBS } from '../../../src/service/turn-queue.js';
import { MAX_OWED_BUCKETS, MAX_OWED_BYTES } from '../../../src/storage/local/local-buckets.js';
import { CHARGES_AT_ONCE } from '../../../src/storage/local/repayment.js';
import { MAX_WAITING_BYTES } from '../../../src/telemetry/log-output.js';
import { MAX_HEARD, STALLED_MS } from '../../../src/telemetry/statsd/statsd-tcp.js';
import { SAMPLES_A_SECOND } from '../../../src/telemetry/top/hit-sampler.js';
import { SLICES } from '../../../src/telemetry/top/hitters-over-time.js';
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
        beyond: 'one more is closed at once; the log counts them',
      },
      {
        what: 'memory held for gRPC connections: unfinished requests, open calls, answers not read',
        bound: `${shownSetting('GRPC_MAX_BUFFERED_BYTES', shownSize)} (\`h2\` only)`,
        beyond: 'the connection that holds most ends',
      },
      {
        what: 'requests that wait for their turns',
        bound: `${shownCount(MAX_QUEUED_JOBS)}, ${shownSize(MAX_QUEUED_BYTES)} of messages`,
        beyond: `${IS_THROTTLED}; \`weir_requests_given_up_total\``,
      },
      {
        what: 'connections of an HTTP port',
        bound: shownCount(MAX_CONNECTIONS),
        beyond: 'the one that is idle longest ends',
      },
      {
        what: 'requests of an HTTP connection; time to send one, to take something of an answer',
        bound: `1 at a time; ${shownTime(REQUEST_TIMEOUT_MS)}, ${shownTime(UNREAD_MS)}`,
        beyond: `the others wait; 408; ${CONNECTION_ENDS}`,
      },
      {
        what: 'reading from the connections of an HTTP port, with the answers to short requests',
        bound: `${shownTime(READING_MS)} in a turn of the event loop`,
        beyond: 'the rest waits, its socket unread',
      },
      {
        what: 'bodies of `/json`',
        bound:
          `${shownSize(BODY_LIMITS.maxHeldBytes)}, a single one may be longer; ` +
          `${shownCount(BODY_LIMITS.maxCalls)} calls`,
        beyond: '503',
      },
      {
        what: 'waiting of a body of `/json` over 4 KiB until it is read, in the queue of turns',
        bound: '`grpc-timeout`; as long as it takes without one, if the queue has room',
        beyond: '503, as nobody knows its domain yet; once it is read it is a request like any other',
      },
      {
        what: 'a view (`/metrics`, `/stats`, `/rlconfig`, `/healthcheck?detail`), statsd and dogstatsd',
        bound: `${shownTime(SLICE_MS)} of one of them in a turn of the event loop`,
        beyond: 'the rest follows; who asks meanwhile shares the next rendering',
      },
      {
        what: 'texts of views that are being sent',
        bound:
          `${shownSize(MAX_HELD_BYTES)}, a single one may be longer; the memory of one text of each view is ` +
          `kept for the next one, ${shownTime(KEPT_MS)} at most`,
        beyond: 'those who read the oldest are cut off',
      },
      {
        what: 'lines of the log that nobody reads',
        bound: shownSize(MAX_WAITING_BYTES),
        beyond: 'dropped, counted in `weir_log_lines_dropped_total`, and said where they are missing',
      },
      {
        what: 'spans of traces that wait for the collector; waiting for it at the end',
        bound:
          `${shownCount(MAX_WAITING_SPANS)}, and ${shownCount(MESSAGES_AT_ONCE)} messages of ${SPANS_AT_ONCE} on ` +
          `their way; ${shownTime(LAST_SPANS_MS)}`,
        beyond: 'lost, counted in `weir_trace_spans_dropped_total`',
      },
      {
        what:
          'an export of spans; informational answers (1xx) of a collector or management server to one request; ' +
          'pieces in which an answer over HTTP/1.1 comes; frames of gRPC a second that hold no message; messages of ' +
          'a management server a second',
        bound:
          `\`OTEL_EXPORTER_OTLP_TIMEOUT\`, retries included; ${MAX_INFORMATIONAL}; ${shownCount(MAX_BODY_PIECES)}; ` +
          `${shownSize(MAX_EMPTY_BYTES)}; ${MAX_MESSAGES_A_SECOND}`,
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'what a statsd collector says on one connection; the time until it takes 128 KiB of lines',
        bound: `${shownSize(MAX_HEARD)}; ${shownTime(STALLED_MS)}`,
        beyond: `${CONNECTION_ENDS}, and is made anew`,
      },
      {
        what: 'a line of the sampled decision log; lines that nobody reads',
        bound:
          `${shownCount(MAX_RECORDED_DESCRIPTORS)} descriptors of ${shownCount(MAX_RECORDED_ENTRIES)} entries, ` +
          `${shownSize(MAX_LINE_CHARACTERS)}; ${shownSize(MAX_WAITING_BYTES)}`,
        beyond: 'cut, and says so; dropped, counted in `weir_decision_log_lines_dropped_total`',
      },
      {
        what: 'series of metrics',
        bound: shownSetting('METRICS_MAX_SERIES'),
        beyond: 'counted under `other`',
      },
      {
        what: 'buckets that are counted one by one, of a minute and of an hour',
        bound:
          `${shownSetting('TOP_BUCKETS')} of each of ${2 * 2 * SLICES} slices of time, twice as many of the newest; ` +
          `${MAX_TOP_ENTRIES} entries of each, ${MAX_TOP_TEXTS} characters`,
        beyond:
          'those of which least was asked are left out, and estimates say how much too high they may be',
      },
      {
        what: 'counting of single buckets',
        bound: `about ${shownCount(SAMPLES_A_SECOND)} denials and as many other decisions a second`,
        beyond: 'of more, one in 2, 4, 8, … is looked at and stands for all of these',
      },
      {
        what: 'questions for `/top`, and the buckets of an answer',
        bound: `one at a time, ${MAX_TOP_WAITING} wait; ${shownCount(MAX_TOP_LIMIT)}`,
        beyond: '503; 400',
      },
      {
        what: 'series of `weir_bucket_used_ratio`',
        bound: shownSetting('BUCKET_USED_RATIO_TOP'),
        beyond: 'buckets of which less was asked have none',
      },
      {
        what: 'buckets in memory',
        bound:
          `${shownSetting('MEMORY_MAX_BUCKETS')}; ${shownSetting('MEMORY_MAX_BYTES', shownSize)}, and up to 6 MB of ` +
          'memory that is not in use',
        beyond: 'the bucket that would be full soonest goes first',
      },
      {
        what: 'what is granted past the limit of one bucket or window',
        bound: `${shownCount(MAX_UINT32)} tokens or hits with the limit; ten years of refill; kept for a day at most`,
        beyond: 'not granted; what is there is shown',
      },
      {
        what: 'buckets that `on_store_failure: local` took from, to be charged when Redis is back',
        bound: `${shownCount(MAX_OWED_BUCKETS)}; ${shownSize(MAX_OWED_BYTES)}; ${CHARGES_AT_ONCE} are charged at once`,
        beyond: 'the one taken from least recently is forgotten: `weir_local_charges_total`',
      },
    ],
  },
  {
    title: 'Worker processes (WORKERS)',
    bounds: [
      {
        what: 'how long a connection waits for a worker that does not answer, with round-robin',
        bound: shownTime(LATE_MS),
        beyond: 'another worker gets it',
      },
      {
        what: 'how long a worker may not answer',
        bound: `${shownTime(SILENT_MS)}; ${shownTime(REPLACED_MS)}, ${shownTime(ALL_SILENT_MS)} when none answers`,
        beyond: 'it gets no new connections; it is killed and replaced, one at a time',
      },
      {
        what: 'calls of `/json` that workers have yet to decide',
        bound: shownCount(CALL_BOUNDS.decide.most),
        beyond: '503',
      },
    ],
  },
];
