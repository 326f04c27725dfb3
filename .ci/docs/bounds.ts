// The table of docs/reference/bounds.md, which `npm run docs` writes: the work and memory that callers, clients of
// views, Redis and management servers can cause. The numbers are the constants of the source.
import { MAX_QUESTION_BYTES } from '../../src/admin/admin-access.js';
import { MAX_TOKENS, MAX_TOKENS_BYTES } from '../../src/admin/admin-tokens.js';
import { MAX_QUESTIONS } from '../../src/admin/buckets/bucket-admin.js';
import { MAX_LIMITS_LISTED } from '../../src/admin/buckets/found-limits.js';
import { MAX_QUESTION_ENTRIES } from '../../src/admin/buckets/read-question.js';
import { MAX_HISTORY_RULES } from '../../src/admin/page/history-service.js';
import { MAX_OVERVIEW_DOMAINS, MAX_SUBSCRIBERS } from '../../src/admin/page/overview-service.js';
import { MAX_TOP_LIMIT } from '../../src/admin/top/top-answer.js';
import { MAX_TOP_ENTRIES, MAX_TOP_TEXTS } from '../../src/admin/top/top-counts.js';
import { CACHED_REQUESTS, MAX_CACHED_REQUEST_BYTES } from '../../src/codec/decode-request.js';
import { MAX_SYMBOL_BYTES } from '../../src/codec/services/service-reader.js';
import { MAX_LAYOUT_ENTRIES } from '../../src/config/files/policy-paths.js';
import { MAX_PLAN_BYTES } from '../../src/config/read/plans/plan-rows.js';
import { MAX_PLAN_ROWS } from '../../src/config/read/policy-fields.js';
import { MAX_RULES_AT_ONCE } from '../../src/config/threads/policy-task.js';
import { MAX_PROBLEMS } from '../../src/config/yaml/config-problem.js';
import { MAX_FILE_BYTES } from '../../src/config/yaml/yaml-value.js';
import { MAX_AUXILIARY_BYTES } from '../../src/grpc/generic-method.js';
import {
  DEFAULT_RECEIVE_TIMEOUT_MS,
  MAX_ANSWERED_CALLS,
  MAX_AUXILIARY_CALLS,
} from '../../src/grpc/h2-transport/grpc-server-state.js';
import { MAX_UNREAD_BYTES } from '../../src/grpc/h2-transport/streaming-call.js';
import { LATE_REQUEST_MS } from '../../src/grpc/h2-transport/unary-call.js';
import { DEFAULT_LIMITS } from '../../src/h2/limits.js';
import { SLICE_BYTES, SLICE_MS, TURN_MS } from '../../src/h2/serving/read-scheduler.js';
import {
  HANDSHAKE_MS,
  HTTP_BOUNDS,
  MAX_CONNECTIONS,
  MAX_UNREAD_BYTES as MAX_UNREAD_TEXT_BYTES,
  SILENCE_MS,
} from '../../src/http/http.js';
import { TURN_MS as HTTP_TURN_MS } from '../../src/http/paced-socket.js';
import { MAX_PAUSE_MS, PAUSES } from '../../src/http/text-view.js';
import { MAX_NAME_BYTES, MAX_PART_BYTES } from '../../src/policy/names/bucket-key.js';
import { MAX_KEY_UNITS } from '../../src/policy/plans/plan-table.js';
import { MAX_VISITED_NODES } from '../../src/policy/possible-ends.js';
import { MAX_CHARACTERS } from '../../src/runtime/texts.js';
import { MAX_LINE_CHARACTERS } from '../../src/server/decision-log/decision-log.js';
import { MAX_NAMED_FILE_BYTES } from '../../src/server/followed-files.js';
import { SETTINGS } from '../../src/server/settings/settings-table.js';
import { MAX_LOGIN_FILE_BYTES } from '../../src/server/store/redis-options.js';
import { MAX_TLS_FILE_BYTES } from '../../src/server/tls-files.js';
import { FLUSH_TIMEOUT_MS } from '../../src/server/tracing/open-tracing.js';
import {
  MAX_PENDING_EXPORTS,
  MAX_QUEUED_SPANS,
  SPANS_PER_BATCH,
} from '../../src/server/tracing/otlp-tracing.js';
import { SWITCH_AFTER_MS } from '../../src/server/workers/policy-rounds.js';
import {
  LATE_AFTER_MS,
  REPLACE_AFTER_MS,
  SILENT_AFTER_MS,
} from '../../src/server/workers/worker-watchdog.js';
import { MAX_ECHOED_UNITS, MAX_METADATA_UNITS } from '../../src/service/answer/dynamic-metadata.js';
import { MAX_TOKEN_CHARACTERS, MAX_TOKENS_CHARACTERS } from '../../src/service/holds/hold-token.js';
import { MAX_WORK_AT_ONCE } from '../../src/service/holds/holds.js';
import { MAX_PLACED_BYTES } from '../../src/service/holds/placed-holds.js';
import { MAX_CALL_BYTES, MAX_OTHER_BYTES, MAX_OWN_BYTES } from '../../src/service/holds/settlement-queue.js';
import {
  MAX_WAITING_BYTES as MAX_LARGE_BYTES,
  MAX_WAITING_REQUESTS,
} from '../../src/service/large-requests.js';
import { MAX_LOGGED_ENTRIES } from '../../src/service/record/decision-line.js';
import { MAX_RECORDED_DESCRIPTORS, MAX_RECORDED_ENTRIES } from '../../src/service/record/record-of.js';
import {
  MAX_SMALL_REQUEST_BYTES,
  MAX_STORE_WAITING_BYTES,
  SMALL_REQUEST_RESERVE_BYTES,
} from '../../src/service/waiting-requests.js';
import { MAX_LEASED_KEYS } from '../../src/storage/leases.js';
import { MAX_BULK_ITEMS_IN_FLIGHT, RESPONSIVE_MICROS } from '../../src/storage/redis/batch-queue.js';
import { QUERIED_MASTERS } from '../../src/storage/redis/cluster/cluster-view.js';
import { MAX_UNREAD_BYTES as MAX_UNREAD_REDIS_BYTES } from '../../src/storage/redis/node/connector.js';
import { MAX_ORDINARY_ITEMS, MAX_TAKES_PER_CALL } from '../../src/storage/redis/redis-store.js';
import { MAX_REDIRECTIONS } from '../../src/storage/redis/redis-store-options.js';
import { QUERY_MS } from '../../src/storage/redis/with-redis.js';
import { ALL_RING_BYTES, RING_BYTES, STEP_SECONDS, STEPS } from '../../src/telemetry/history/rate-history.js';
import { MAX_WAITING_BYTES } from '../../src/telemetry/log-output.js';
import { STALLED_MS } from '../../src/telemetry/statsd/statsd-tcp.js';
import { SAMPLES_PER_SECOND } from '../../src/telemetry/top/hit-sampler.js';
import { SLICES } from '../../src/telemetry/top/sliding-heavy-hitters.js';

/** Returns a number with thousands separators: `10,000`. */
function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** Returns a size with its unit: `32 MiB`, `256 KiB` or `512 bytes`. */
function size(bytes: number): string {
  if (bytes % 2 ** 20 === 0) return `${count(bytes / 2 ** 20)} MiB`;
  if (bytes % 2 ** 10 === 0) return `${count(bytes / 2 ** 10)} KiB`;
  return `${count(bytes)} bytes`;
}

/** Returns a duration in milliseconds, or in seconds if it is a whole number of seconds. */
function time(ms: number): string {
  return ms >= 1000 && ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}

/** Returns a setting with its default, formatted by `show`. */
function setting(name: string, show: (value: number) => string = count): string {
  const found = SETTINGS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`the setting ${name} does not exist`);
  const value = Number(found.default);
  return `\`${name}\`: ${Number.isNaN(value) ? found.default : show(value)}`;
}

const IS_GIVEN_UP = 'the answer [above a bound](#requests-above-a-bound)';
const CONNECTION_ENDS = 'weir closes the connection';
const FILE_REJECTED =
  'weir logs an error. At the start, weir then exits. On a reload, weir keeps the previous content';
const SHARED_FAIRLY = '[shared fairly](#bounds)';

/** The rows of the table: what is bounded, the bound, and what happens beyond it. */
export const BOUNDS = `
| **One request** | | |
| size of a gRPC message as it is sent, and with \`GRPC_TRANSPORT=grpc-js\` also after decompression | ${setting('GRPC_MAX_MESSAGE_BYTES', size)} | RESOURCE_EXHAUSTED |
| size of a request, after decompression | ${setting('MAX_REQUEST_BYTES', size)} | ${IS_GIVEN_UP}; 413 for \`/json\` |
| descriptors | ${setting('MAX_DESCRIPTORS')} | ${IS_GIVEN_UP} |
| entries in all descriptors together | ${setting('MAX_ENTRIES')} | ${IS_GIVEN_UP} |
| limits that apply to a request | ${setting('MAX_LIMITS')} | ${IS_GIVEN_UP} |
| size of a value that weir compares with regular expressions | ${setting('MAX_REGEX_VALUE_BYTES', size)} | ${IS_GIVEN_UP} |
| [matching work](../policy/matching.md#the-cost-of-matching) | ${setting('MAX_MATCH_WORK')} units | ${IS_GIVEN_UP} |
| time for which a large request (more than 32 descriptors, or 16 KiB) waits for its turn | a quarter of the caller's remaining time, at least 5 ms; 1 s for a caller without a deadline | ${IS_GIVEN_UP} |
| slots and reservations that weir settles immediately for one request; characters in the hold tokens of the request | ${count(MAX_WORK_AT_ONCE)}; ${count(MAX_TOKENS_CHARACTERS)} | weir settles the rest within seconds; weir ignores further tokens |
| length of the hold token that weir returns for all holds of a request | ${count(MAX_TOKEN_CHARACTERS)} characters | ${IS_GIVEN_UP} |
| memory of settlements that wait for the store: with hold tokens from weir, or after canceled calls; for requests whose start the store has not answered; all others | ${size(MAX_OWN_BYTES)}; ${size(MAX_OTHER_BYTES)}; ${size(MAX_OTHER_BYTES)}; connections share each fairly | weir drops the settlement, and the hold expires; \`weir_hold_settlements_lost_total\` counts the settlement, or \`weir_hold_tokens_unmatched_total\` if weir does not know the token |
| memory of calls to Redis that contain such settlements, for each of the three kinds | ${size(MAX_CALL_BYTES)} | further settlements wait until Redis has answered others |
| size of a bucket name; size of a part of the name | ${size(MAX_NAME_BYTES)}; ${size(MAX_PART_BYTES)} | weir replaces the name, or the part, with its SHA-256 hash |
| parts of the request that weir copies to dynamic metadata; \`metadata\` of rules that weir copies to dynamic metadata | ${size(MAX_ECHOED_UNITS)}; ${size(MAX_METADATA_UNITS)} (1 byte per UTF-16 code unit, and 128 per entry or member) | \`descriptorsLeftOut\` and \`metadataLeftOut\` count the omitted parts |
| content of a decision in a debug log line | ${MAX_LOGGED_ENTRIES} entries, ${MAX_CHARACTERS} characters per string | the line shows the number of omitted entries or characters |
| **One gRPC connection (GRPC_TRANSPORT=h2)** | | |
| reads in one event-loop turn: from one connection; from all connections | ${time(SLICE_MS)} or ${size(SLICE_BYTES)}; ${time(TURN_MS)} | unread data stays in the socket until a later turn; weir reads connections with little recent traffic first |
| concurrent calls | ${setting('GRPC_MAX_CONCURRENT_STREAMS')} | weir refuses the call, and the client may retry it |
| size of a call's header list | ${setting('GRPC_MAX_HEADER_BYTES', size)} | 431 |
| size of a call's encoded header list; number of CONTINUATION frames for this list | ${size(DEFAULT_LIMITS.maxHeaderBlockBytes)}; ${DEFAULT_LIMITS.maxContinuations} (both bounds increase with \`GRPC_MAX_HEADER_BYTES\`) | ${CONNECTION_ENDS} |
| total size of incomplete messages (weir keeps at most \`MAX_REQUEST_BYTES\` of each) | 8 MiB, or twice \`MAX_REQUEST_BYTES\` if that is more | RESOURCE_EXHAUSTED |
| time to receive a complete request | the call's \`grpc-timeout\` and ${time(LATE_REQUEST_MS)}, at most ${time(DEFAULT_RECEIVE_TIMEOUT_MS)} | DEADLINE_EXCEEDED |
| open health and reflection calls; messages of these calls that weir handles in one event-loop turn | ${MAX_AUXILIARY_CALLS}; 1 for each connection, and 8 for all connections | RESOURCE_EXHAUSTED; further messages wait for the next turn |
| size of a health or reflection call's unread answers | ${size(MAX_UNREAD_BYTES)} | RESOURCE_EXHAUSTED |
| size of a health or reflection request; bytes in a service or symbol name | ${size(MAX_AUXILIARY_BYTES)}, or \`MAX_REQUEST_BYTES\` if that is less; ${count(MAX_SYMBOL_BYTES)} | RESOURCE_EXHAUSTED; INTERNAL |
| calls that are canceled or reset before their answer (rapid reset) | a burst of ${count(DEFAULT_LIMITS.resetBurst)}, then ${count(DEFAULT_LIMITS.resetRefillPerSecond)} per second. The bound is high because Envoy cancels many calls while Redis does not answer. | ${CONNECTION_ENDS} |
| answered calls that weir remembers, so that it can release their holds if the client resets the calls; memory of these holds, for all connections together | ${count(MAX_ANSWERED_CALLS)}; ${size(MAX_PLACED_BYTES)} | weir forgets the oldest call, and its holds last until they are settled or expire |
| SETTINGS, PING, PRIORITY, WINDOW_UPDATE and empty DATA frames | a burst of ${count(DEFAULT_LIMITS.controlBurst)}, then ${count(DEFAULT_LIMITS.controlRefillPerSecond)} per second; each request allows additional frames | ${CONNECTION_ENDS} |
| unread answers | ${size(DEFAULT_LIMITS.maxOutputBytes)}, or twice \`MAX_REQUEST_BYTES\` if that is more; until the client reads the answers, weir reads no requests from the connection | ${CONNECTION_ENDS} |
| duration of the TLS handshake; time until the client sends the HTTP/2 preface | 10 s each | ${CONNECTION_ENDS}; an HTTP/1 client gets a plain-text explanation |
| **All callers together, in each process** | | |
| gRPC connections | ${setting('GRPC_MAX_CONNECTIONS')} | weir closes further connections immediately; the log counts them |
| memory of gRPC connections: incomplete requests, open calls, unread answers | ${setting('GRPC_MAX_BUFFERED_BYTES', size)} (\`h2\` only) | weir closes the connection that uses the most memory |
| cached requests of at most ${MAX_CACHED_REQUEST_BYTES} bytes; memory of these requests | ${count(CACHED_REQUESTS)}; 1 MiB | weir decodes further requests each time |
| large requests that wait for their turn; memory of these requests | ${count(MAX_WAITING_REQUESTS)}; ${size(MAX_LARGE_BYTES)} | ${IS_GIVEN_UP} |
| connections to an HTTP port, each with one \`/json\` body of at most \`MAX_REQUEST_BYTES\` | ${count(MAX_CONNECTIONS)} | weir closes the oldest connection without a request or a finished TLS handshake, or else the connection whose latest request is the oldest |
| concurrent requests on an HTTP connection | 1 | ${CONNECTION_ENDS} |
| size of the headers of an HTTP request | ${size(HTTP_BOUNDS.maxHeaderSize)} | 431 |
| time in which a client must send an HTTP request; time for which a client does not read the answer | ${time(HTTP_BOUNDS.requestTimeout)}; ${time(SILENCE_MS)} | 408; ${CONNECTION_ENDS} |
| work for all HTTP connections: reading requests and answering short requests | ${time(HTTP_TURN_MS)} in each event-loop turn | unread data stays in the socket until the next turn |
| rendering of \`/metrics\`, \`/stats\`, \`/rlconfig\`, \`/healthcheck?detail\` | one at a time, then a pause of ${PAUSES} times its duration, at most ${time(MAX_PAUSE_MS)} | requests that arrive meanwhile wait, and share the result of the next rendering |
| rules that the main thread renders for \`/rlconfig\` | ${count(MAX_RULES_AT_ONCE)} | a separate thread renders the rules |
| rendered text that clients of an HTTP port have not read yet | ${size(MAX_UNREAD_TEXT_BYTES)}, or one larger text | weir closes the connection of the oldest answer |
| unread log lines | ${size(MAX_WAITING_BYTES)} | weir drops lines, counts them in \`weir_log_lines_dropped_total\`, and marks the gap in the log |
| trace spans that wait for the collector; time for which weir waits for the collector at exit | ${count(MAX_QUEUED_SPANS)}, plus ${count(MAX_PENDING_EXPORTS)} unanswered messages with ${SPANS_PER_BATCH} spans each; ${time(FLUSH_TIMEOUT_MS)} | weir drops spans, and counts them in \`weir_trace_spans_dropped_total\` |
| duration of a trace export | \`OTEL_EXPORTER_OTLP_TIMEOUT\`, including retries | ${CONNECTION_ENDS} |
| time in which a statsd collector must accept 128 KiB of lines | ${time(STALLED_MS)} | weir closes the connection and reconnects |
| content of a line in the sampled decision log; size of all unread lines | ${count(MAX_RECORDED_DESCRIPTORS)} descriptors with ${count(MAX_RECORDED_ENTRIES)} entries each, ${size(MAX_LINE_CHARACTERS)}; ${size(MAX_WAITING_BYTES)} | weir shortens and marks the line; weir drops lines, and counts them in \`weir_decision_log_lines_dropped_total\` |
| metric series | ${setting('METRICS_MAX_SERIES')} | weir counts further rules and domains as \`other\` |
| buckets that \`weir top\` tracks for the last minute and hour | ${setting('TOP_BUCKETS')} in each of ${2 * 2 * SLICES} time slices, twice as many in the newest slice; ${MAX_TOP_ENTRIES} entries and ${MAX_TOP_TEXTS} characters per bucket | weir omits the buckets with the fewest requests, and shows the maximum error of each estimate |
| decisions that \`weir top\` counts | about ${count(SAMPLES_PER_SECOND)} denials and as many other decisions per second | weir counts only one of every 2, 4, 8, … decisions, and multiplies the count by that number |
| concurrent requests to \`/top\`; buckets in an answer | 1; ${count(MAX_TOP_LIMIT)} | further requests wait; 400 |
| series of \`weir_bucket_used_ratio\` | ${setting('BUCKET_USED_RATIO_TOP')} | buckets with fewer requests have no series |
| buckets in memory | ${setting('MEMORY_MAX_BUCKETS')}; ${setting('MEMORY_MAX_BYTES', size)}, plus up to 6 MB of unused memory | weir evicts the bucket that will be full soonest |
| **Workers (WORKERS)** | | |
| time for which a new connection waits for a worker that does not answer | ${time(LATE_AFTER_MS)} | another worker gets the connection |
| time for which a worker does not answer | ${time(SILENT_AFTER_MS)}; ${time(REPLACE_AFTER_MS)} | the worker gets no new connections; weir replaces the worker |
| time for which new policies wait for a worker that has not loaded them | ${time(SWITCH_AFTER_MS)} | the policies take effect in the other processes |
| **The debug port** | | |
| duration of a TLS handshake | ${time(HANDSHAKE_MS)} | ${CONNECTION_ENDS} |
| size of a request to \`/buckets\` or \`/top\` | ${size(MAX_QUESTION_BYTES)} | 413 |
| entries in a request to \`/buckets\`; concurrent requests to \`/buckets\` | ${MAX_QUESTION_ENTRIES}; ${MAX_QUESTIONS} | 400; 503 |
| limits in an answer from \`/buckets\` | ${String(MAX_LIMITS_LISTED)} | the answer shows the number of omitted limits; \`reset\` and \`grant\` change only the listed limits |
| nodes that weir searches if a request contains only some entries of a descriptor | ${count(MAX_VISITED_NODES)} | the answer says that more limits may exist |
| open pages that receive \`/overview\`; time for which a page reads no data | ${MAX_SUBSCRIBERS}; ${time(SILENCE_MS)} | 503; weir closes the connection |
| domains in an answer from \`/overview\` | ${count(MAX_OVERVIEW_DOMAINS)} | the answer shows the number of omitted domains |
| rules with a separate history of the last hour; memory for the combined history of all rules | ${setting('HISTORY_RULES')}, each with ${STEPS} steps of ${STEP_SECONDS} s in ${size(RING_BYTES)}; ${size(ALL_RING_BYTES)} | weir counts further rules only in the total, and the answer from \`/history\` reports that rules are missing |
| rules in a request to \`/history\`; concurrent requests to \`/history\` | ${MAX_HISTORY_RULES}; 1 | 400; further requests wait |
| tokens in \`ADMIN_TOKENS_FILE\`; size of the file | ${count(MAX_TOKENS)}; ${size(MAX_TOKENS_BYTES)} | the file is invalid: weir does not start, or keeps the previous tokens |
| **Redis and management servers** | | |
| limits in one call to Redis | ${count(MAX_TAKES_PER_CALL)}, or the limits of one request | the next call contains the rest |
| total number of limits in waiting requests, for each Redis server or cluster node | ${setting('REDIS_MAX_IN_FLIGHT')}, of which requests with more than ${MAX_ORDINARY_ITEMS} limits may use half | OVER_LIMIT if a rule could deny the request; \`on_store_failure\` if Redis is unavailable or has not answered for ${time(RESPONSIVE_MICROS / 1000)} |
| limits in unanswered calls to Redis for requests with more than ${MAX_ORDINARY_ITEMS} limits | ${count(MAX_BULK_ITEMS_IN_FLIGHT)} before a further call is sent | further calls wait in the order of their arrival. If the deadline of a waiting request passes while Redis answers other requests, weir answers OVER_LIMIT if a rule could deny the request, and OK otherwise |
| buckets whose takes are counted for leases, in each process | ${count(2 * MAX_LEASED_KEYS)} | weir forgets the buckets that were not used for the longest time, and their leases |
| memory of decoded requests that wait for Redis, including canceled calls | ${size(MAX_STORE_WAITING_BYTES)} (\`weir_store_waiting_bytes\`), ${SHARED_FAIRLY}. ${size(SMALL_REQUEST_RESERVE_BYTES)} are reserved for requests of at most ${size(MAX_SMALL_REQUEST_BYTES)}. | OVER_LIMIT if a rule could deny the request, otherwise OK; \`on_store_failure\` if Redis is unavailable or has not answered for ${time(RESPONSIVE_MICROS / 1000)} |
| a reply from Redis | only the expected number of integers, each from −2^53 to 2^53−1 | ${CONNECTION_ENDS}, and \`on_store_failure\` applies to the calls on this connection |
| a number stored in Redis | 2^53−1 | weir treats the bucket as empty, or the window as used up |
| cluster nodes that weir asks for the slot assignment | all configured nodes at startup; later ${QUERIED_MASTERS} masters, and if none of them answers, all configured nodes | weir runs one update of the slot assignment at a time; until the update ends, calls use the known assignment |
| size of an incomplete reply from Redis or a Sentinel; duration of a query for cluster nodes | ${size(MAX_UNREAD_REDIS_BYTES)}; ${time(QUERY_MS)} | ${CONNECTION_ENDS}, and asks another server |
| cluster nodes that one call tries in succession | ${MAX_REDIRECTIONS + 1}, within the call's deadline | \`on_store_failure\` applies |
| size of an xDS update | \`XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES\`, 4 MiB by default | weir closes the stream and connects again later; the previous policies stay in effect |
| files and directories below \`RUNTIME_ROOT\`, or in a directory that \`weir migrate\` reads | ${count(MAX_LAYOUT_ENTRIES)} | weir reports an error, and reads none of the files |
| size of a policy file; number of errors that weir lists for one load | ${size(MAX_FILE_BYTES)}; ${count(MAX_PROBLEMS)} | the file is invalid; weir shows the number of further errors |
| size of a table of [plans](../policy/plans.md); number of rows | ${size(MAX_PLAN_BYTES)}; ${count(MAX_PLAN_ROWS)} | the file is invalid |
| length of a customer's name in a table of plans | ${String(MAX_KEY_UNITS)} characters | the row is invalid |
| size of a certificate or key that weir reloads; size of a login file | ${size(MAX_TLS_FILE_BYTES)}; ${size(MAX_LOGIN_FILE_BYTES)} | ${FILE_REJECTED} |
| size of any other file that a setting or option specifies (a regular file, not a pipe or device) | ${size(MAX_NAMED_FILE_BYTES)} | ${FILE_REJECTED} |
`.trim();
