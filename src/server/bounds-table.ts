import { MAX_JSON_DEPTH, MAX_MEMBERS } from '../codec/json/json-request.js';
import { LARGE_MESSAGE_BYTES, MAX_ENTRIES, maxFields } from '../codec/messages.js';
import { MAX_SERVICE_FIELDS, MAX_SYMBOL_BYTES } from '../codec/services/service-reader.js';
import { MAX_RESOURCES, MAX_UPDATE_BYTES } from '../config/xds/envelope.js';
import { MAX_FIELDS } from '../config/xds/load-update.js';
import { MAX_PROBLEMS } from '../config/yaml/config-problem.js';
import { MAX_FILE_BYTES, MAX_MARKS } from '../config/yaml/yaml-bounds.js';
import { MAX_INFLATION } from '../grpc/grpc-server.js';
import { DEFAULT_RECEIVE_TIMEOUT_MS, MAX_RARE_CALLS } from '../grpc/h2-transport/call-context.js';
import { DEFAULT_LIMITS } from '../h2/limits.js';
import { TURN_MS, UNIT_BYTES, UNIT_MS } from '../h2/serving/read-turns.js';
import { MAX_NAME_BYTES, MAX_PART_BYTES } from '../policy/names/bucket-key.js';
import { MAX_REPEATED } from '../service/answer/dynamic-metadata.js';
import {
  LEAST_WAIT_MICROS,
  MAX_WORK_MICROS,
  SHARE,
  STEPS_PER_MICRO,
  WAIT_WITHOUT_DEADLINE_MICROS,
} from '../service/costly-requests.js';
import { MAX_LOGGED_ENTRIES } from '../service/observe.js';
import { STRETCH_STEPS } from '../service/planning.js';
import { MAX_BYTES, MAX_PIECES } from '../service/turn-queue.js';
import { MAX_STORE_WAITING_BYTES, SMALL_BYTES, SMALL_ROOM_BYTES } from '../service/waiting-requests.js';
import { MAX_OWED_BUCKETS, MAX_OWED_BYTES } from '../storage/local/local-buckets.js';
import { CHARGES_AT_ONCE } from '../storage/local/repayment.js';
import { LIVELY_MICROS } from '../storage/redis/redis-load.js';
import { MAX_TAKES_PER_CALL } from '../storage/redis/redis-store.js';
import { WIDE_ITEMS_IN_FLIGHT } from '../storage/redis/wide-sender.js';
import { NARROW_ITEMS, QUANTUM_ITEMS } from '../storage/redis/wide-takes.js';
import { MAX_WAITING_BYTES } from '../telemetry/log-output.js';
import { BODY_LIMITS } from './http/body-calls.js';
import { MAX_CONNECTIONS, REQUEST_TIMEOUT_MS } from './http/http.js';
import { UNREAD_MS } from './http/http-connections.js';
import { READING_MS } from './http/http-reads.js';
import { defaultOf, SETTINGS } from './settings/settings-table.js';
import { MAX_CHARACTERS } from './shown-text.js';
import { MAX_HELD_BYTES } from './views/held-texts.js';
import { KEPT_MS } from './views/page-memory.js';
import { SLICE_MS } from './views/view-slices.js';
import { MAX_FORWARDED } from './workers/forwarded-decisions.js';
import { LATE_MS, SILENT_MS } from './workers/pulse.js';
import { ALL_SILENT_MS, REPLACED_MS } from './workers/worker-watch.js';

/** One thing that is bounded. */
export interface Bound {
  readonly what: string;
  /** Its value, or the setting that holds it with its default. */
  readonly bound: string;
  /** What happens beyond it. */
  readonly beyond: string;
}

/** Bounds that belong together. */
export interface BoundGroup {
  readonly title: string;
  readonly bounds: readonly Bound[];
}

/** A whole number as people read it: `10,000`. */
function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** `32 MiB`, `256 KiB`, `512 bytes`. */
function size(bytes: number): string {
  if (bytes % 2 ** 20 === 0) return `${count(bytes / 2 ** 20)} MiB`;
  if (bytes % 2 ** 10 === 0) return `${count(bytes / 2 ** 10)} KiB`;
  return `${count(bytes)} bytes`;
}

/** Milliseconds, or seconds where they are whole. */
function time(ms: number): string {
  return ms >= 1000 && ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}

/** A setting with its default, as it is or as a size. */
function setting(name: string, show: (value: number) => string = count): string {
  const found = SETTINGS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no setting ${name}`);
  const value = Number(found.default);
  return `\`${name}\`: ${Number.isNaN(value) ? found.default : show(value)}`;
}

const REFUSED = 'INVALID_ARGUMENT; reading ends at the first one too many';
const THROTTLED =
  'OVER_LIMIT if a rule in force could have matched, whatever `on_store_failure` says, else as if nothing matched';
const ENDED = 'the connection ends';
const SCARCE =
  'of the upper half a connection has at most what is left free beside an eighth, which is kept for ' +
  'connections that hold nothing of it';

/**
 * What bounds the work and the memory that callers, readers of views, Redis and management servers can cause: the
 * manual's table is printed from it (npm run docs), with the very constants that hold.
 */
export const BOUNDS: readonly BoundGroup[] = [
  {
    title: 'One request',
    bounds: [
      {
        what: 'length of a message, and of a body of `/json`',
        bound: setting('GRPC_MAX_MESSAGE_BYTES', size),
        beyond: 'RESOURCE_EXHAUSTED; 413',
      },
      {
        what: 'what a compressed message may become',
        bound: `${setting('GRPC_MAX_INFLATED_BYTES', size)}, and ${MAX_INFLATION} times its length`,
        beyond: 'RESOURCE_EXHAUSTED; inflating stops there',
      },
      { what: 'descriptors', bound: setting('MAX_DESCRIPTORS'), beyond: REFUSED },
      { what: 'entries of all descriptors together', bound: count(MAX_ENTRIES), beyond: REFUSED },
      {
        what: 'protobuf fields, unknown, nested and repeated ones included',
        bound:
          '4 for each entry and 10 for each descriptor that are allowed: ' +
          `${count(maxFields(Number(defaultOf('maxDescriptors'))))}`,
        beyond: REFUSED,
      },
      {
        what: 'nesting of a body of `/json`; members of one of its objects',
        bound: `${MAX_JSON_DEPTH} levels; ${MAX_MEMBERS}`,
        beyond: '400',
      },
      {
        what: 'limits that the descriptors meet, candidates apart',
        bound: setting('MAX_LIMITS'),
        beyond: 'INVALID_ARGUMENT, nothing taken',
      },
      {
        what: 'work of matching',
        bound:
          `${SHARE * 100} % of the time that the caller has left, at most ` +
          `${time(MAX_WORK_MICROS / 1000)} of CPU, counted in steps`,
        beyond: `${THROTTLED}; \`weir_match_budget_exceeded_total\``,
      },
      {
        what:
          'work at a stretch: messages over ' +
          size(LARGE_MESSAGE_BYTES) +
          ', many descriptors, costly matching',
        bound:
          `about ${time(STRETCH_STEPS / STEPS_PER_MICRO / 1000)}, one stretch in a turn of the event ` +
          'loop for all requests',
        beyond: 'the rest takes turns with other connections',
      },
      {
        what: 'waiting for those turns',
        bound:
          `${SHARE * 100} % of the time that the caller has left, at least ` +
          `${time(LEAST_WAIT_MICROS / 1000)}; ${time(WAIT_WITHOUT_DEADLINE_MICROS / 1000)} without a ` +
          'deadline',
        beyond: `${THROTTLED}; \`weir_requests_given_up_total\``,
      },
      {
        what: 'name of a bucket; a text in it',
        bound: `${size(MAX_NAME_BYTES)}; ${size(MAX_PART_BYTES)}`,
        beyond: 'a digest (SHA-256) stands for it',
      },
      {
        what: 'what dynamic metadata repeat of a request; `metadata` of rules in it',
        bound: `${size(MAX_REPEATED)} of characters each`,
        beyond: 'what is left out is counted in `descriptorsLeftOut`, `metadataLeftOut`',
      },
      {
        what: 'a line of the decision log',
        bound: `${MAX_LOGGED_ENTRIES} entries, ${MAX_CHARACTERS} characters of a text`,
        beyond: 'the line says how many more',
      },
    ],
  },
  {
    title: 'One gRPC connection (GRPC_TRANSPORT=h2)',
    bounds: [
      {
        what: 'reading in a turn of the event loop; of all connections',
        bound: `${time(UNIT_MS)} or ${size(UNIT_BYTES)}; ${time(TURN_MS)}`,
        beyond: 'the rest waits, its socket unread; those that lately took little go first',
      },
      {
        what: 'calls at once',
        bound: setting('GRPC_MAX_CONCURRENT_STREAMS'),
        beyond: 'the call is refused, to be tried again',
      },
      {
        what: 'header list of a call; its encoded block; its CONTINUATION frames',
        bound:
          `${setting('GRPC_MAX_HEADER_BYTES', size)}; ${size(DEFAULT_LIMITS.maxHeaderBlockBytes)}; ` +
          `${DEFAULT_LIMITS.maxContinuations} (more of both with a larger list)`,
        beyond: `431; ${ENDED}`,
      },
      {
        what: 'unfinished messages together',
        bound: 'twice `GRPC_MAX_MESSAGE_BYTES`, at least 8 MiB',
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'a request that does not come to its end',
        bound: `its \`grpc-timeout\`, at most ${time(DEFAULT_RECEIVE_TIMEOUT_MS)} without one`,
        beyond: 'DEADLINE_EXCEEDED',
      },
      {
        what: 'open calls of health and reflection; their messages in a turn',
        bound: `${MAX_RARE_CALLS}; 1, and 8 of all connections`,
        beyond: 'RESOURCE_EXHAUSTED; the next turn',
      },
      {
        what: 'fields of a request of health or reflection; bytes of a name in it',
        bound: `${MAX_SERVICE_FIELDS}; ${count(MAX_SYMBOL_BYTES)}`,
        beyond: 'INTERNAL',
      },
      {
        what: 'calls cancelled, or made to be reset, before their answers (rapid reset)',
        bound:
          `${count(DEFAULT_LIMITS.resetBurst)} at once and ${count(DEFAULT_LIMITS.resetRefillPerSecond)} ` +
          'each second: Envoy cancels whatever a hung Redis does not answer',
        beyond: ENDED,
      },
      {
        what: 'SETTINGS, PING, PRIORITY, WINDOW_UPDATE, empty DATA without requests',
        bound:
          `${count(DEFAULT_LIMITS.controlBurst)} at once, ` +
          `${count(DEFAULT_LIMITS.controlRefillPerSecond)} each second; each request earns some`,
        beyond: ENDED,
      },
      {
        what: 'answers that are not read',
        bound: `it is not read from; ${size(DEFAULT_LIMITS.maxOutputBytes)} of answers, or two of the largest messages`,
        beyond: ENDED,
      },
      {
        what: 'the beginning of HTTP/2, and before it the TLS handshake',
        bound: '10 s each',
        beyond: `${ENDED}; HTTP/1 gets a line of text`,
      },
    ],
  },
  {
    title: 'All callers together, in each process',
    bounds: [
      {
        what: 'gRPC connections',
        bound: setting('GRPC_MAX_CONNECTIONS'),
        beyond: 'one more is closed at once; the log counts them',
      },
      {
        what: 'memory held for gRPC connections: unfinished requests, open calls, answers not read',
        bound: `${setting('GRPC_MAX_BUFFERED_BYTES', size)} (\`h2\` only)`,
        beyond: 'the connection that holds most ends',
      },
      {
        what: 'requests that wait for their turns',
        bound: `${count(MAX_PIECES)}, ${size(MAX_BYTES)} of messages`,
        beyond: `${THROTTLED}; \`weir_requests_given_up_total\``,
      },
      {
        what: 'connections of an HTTP port',
        bound: count(MAX_CONNECTIONS),
        beyond: 'the one that is idle longest ends',
      },
      {
        what: 'requests of an HTTP connection; time to send one, to take something of an answer',
        bound: `1 at a time; ${time(REQUEST_TIMEOUT_MS)}, ${time(UNREAD_MS)}`,
        beyond: `the others wait; 408; ${ENDED}`,
      },
      {
        what: 'reading from the connections of an HTTP port, with the answers to short requests',
        bound: `${time(READING_MS)} in a turn of the event loop`,
        beyond: 'the rest waits, its socket unread',
      },
      {
        what: 'bodies of `/json`',
        bound: `${size(BODY_LIMITS.maxHeldBytes)}, a single one may be longer; ${count(BODY_LIMITS.maxCalls)} calls`,
        beyond: '503',
      },
      {
        what: 'waiting of a body of `/json` over 4 KiB until it is read, in the queue of turns',
        bound: '`grpc-timeout`; as long as it takes without one, if the queue has room',
        beyond: '503, as nobody knows its domain yet; once it is read it is a request like any other',
      },
      {
        what: 'a view (`/metrics`, `/stats`, `/rlconfig`, `/healthcheck?detail`), statsd and dogstatsd',
        bound: `${time(SLICE_MS)} of one of them in a turn of the event loop`,
        beyond: 'the rest follows; who asks meanwhile shares the next rendering',
      },
      {
        what: 'texts of views that are being sent',
        bound:
          `${size(MAX_HELD_BYTES)}, a single one may be longer; the memory of one text of each view is ` +
          `kept for the next one, ${time(KEPT_MS)} at most`,
        beyond: 'those who read the oldest are cut off',
      },
      {
        what: 'lines of the log that nobody reads',
        bound: size(MAX_WAITING_BYTES),
        beyond: 'dropped, counted in `weir_log_lines_dropped_total`, and said where they are missing',
      },
      { what: 'series of metrics', bound: setting('METRICS_MAX_SERIES'), beyond: 'counted under `other`' },
      {
        what: 'buckets in memory',
        bound:
          `${setting('MEMORY_MAX_BUCKETS')}; ${setting('MEMORY_MAX_BYTES', size)}, and up to 6 MB of ` +
          'memory that is not in use',
        beyond: 'the bucket that would be full soonest goes first',
      },
      {
        what: 'buckets that `on_store_failure: local` took from, to be charged when Redis is back',
        bound: `${count(MAX_OWED_BUCKETS)}; ${size(MAX_OWED_BYTES)}; ${CHARGES_AT_ONCE} are charged at once`,
        beyond: 'the one taken from least recently is forgotten: `weir_local_charges_total`',
      },
    ],
  },
  {
    title: 'Worker processes (WORKERS)',
    bounds: [
      {
        what: 'how long a connection waits for a worker that does not answer, with round-robin',
        bound: time(LATE_MS),
        beyond: 'another worker gets it',
      },
      {
        what: 'how long a worker may not answer',
        bound: `${time(SILENT_MS)}; ${time(REPLACED_MS)}, ${time(ALL_SILENT_MS)} when none answers`,
        beyond: 'it gets no new connections; it is killed and replaced, one at a time',
      },
      {
        what: 'calls of `/json` that workers have yet to decide',
        bound: count(MAX_FORWARDED),
        beyond: '503',
      },
    ],
  },
  {
    title: 'Redis and management servers',
    bounds: [
      {
        what: 'takes in one call to Redis',
        bound: `${count(MAX_TAKES_PER_CALL)}, or one request`,
        beyond: 'the next call takes them',
      },
      {
        what: 'limits that wait for Redis, a request counting for each that it meets',
        bound: `${setting('REDIS_MAX_IN_FLIGHT')}; ${SCARCE}`,
        beyond:
          `OVER_LIMIT if a rule that the request meets may deny; \`on_store_failure\` answers if Redis ` +
          `was silent for ${time(LIVELY_MICROS / 1000)}`,
      },
      {
        what: `limits of requests that meet more than ${NARROW_ITEMS}, which wait by themselves`,
        bound:
          'as many again, one connection at most what is left free; as many once more in requests of at ' +
          `most ${QUANTUM_ITEMS} from connections with nothing waiting; ${WIDE_ITEMS_IN_FLIGHT}, or one ` +
          'request, are given to Redis at a time, by turns of the connections',
        beyond:
          'OVER_LIMIT if a rule that the request meets may deny, else as if nothing matched; so for ' +
          'one whose time is over while Redis serves others',
      },
      {
        what: 'decoded requests that wait for Redis, those whose callers have gone included',
        bound:
          `${size(MAX_STORE_WAITING_BYTES)}, ${size(SMALL_ROOM_BYTES)} of them for requests of at most ` +
          `${size(SMALL_BYTES)}; ${SCARCE}; \`weir_store_waiting_bytes\``,
        beyond:
          'OVER_LIMIT if a rule that the request meets may deny, else as if nothing matched; ' +
          '`on_store_failure` answers if Redis is away or ' +
          `was silent for ${time(LIVELY_MICROS / 1000)}`,
      },
      {
        what: 'a reply of Redis',
        bound: 'as many whole numbers, from −2^53 to 2^53−1, as were asked for',
        beyond: `${ENDED}, \`on_store_failure\` answers its calls`,
      },
      {
        what: 'a number stored in Redis',
        bound: '2^53−1',
        beyond: 'the bucket counts as empty, the window as used up',
      },
      {
        what: 'resources, fields and bytes of an xDS update',
        bound:
          `${count(MAX_RESOURCES)}; ${count(MAX_FIELDS)}; \`XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES\`, at most ` +
          `${size(MAX_UPDATE_BYTES)}`,
        beyond: 'NACK in a sentence; the old policy stays',
      },
      {
        what: 'a policy file; errors listed of a load',
        bound: `${size(MAX_FILE_BYTES)}; ${count(MAX_PROBLEMS)}`,
        beyond: 'the file is refused; the rest is counted',
      },
      {
        what:
          'brackets, commas, colons, dashes and line ends of a policy file with anchors, tags, escapes ' +
          'or texts of several lines',
        bound: count(MAX_MARKS),
        beyond: 'the file is refused',
      },
    ],
  },
];
