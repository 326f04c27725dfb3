import { MAX_LAYOUT_ENTRIES } from '../../../src/config/files/policy-paths.js';
import { MAX_PLAN_BYTES } from '../../../src/config/read/plans/plan-rows.js';
import { MAX_PLAN_ROWS } from '../../../src/config/read/plans/read-plan-table.js';
import { MAX_RESOURCES, MAX_UPDATE_BYTES } from '../../../src/config/xds/envelope.js';
import { MAX_FIELDS } from '../../../src/config/xds/load-update.js';
import { MAX_PROBLEMS } from '../../../src/config/yaml/config-problem.js';
import { MAX_FILE_BYTES, MAX_MARKS } from '../../../src/config/yaml/yaml-bounds.js';
import { MAX_KEY_UNITS } from '../../../src/policy/plans/plan-table.js';
import { MAX_LOGIN_FILE_BYTES } from '../../../src/server/login-file.js';
import { MAX_NAMED_FILE_BYTES } from '../../../src/server/settings/named-file.js';
import { MAX_TLS_FILE_BYTES } from '../../../src/server/tls-files.js';
import {
  MAX_SMALL_REQUEST_BYTES,
  MAX_STORE_WAITING_BYTES,
  SMALL_REQUEST_RESERVE_BYTES,
} from '../../../src/service/waiting-requests.js';
import { MAX_BYTES, MAX_KEYS_BYTES } from '../../../src/storage/redis/announcements.js';
import {
  MAX_CONCURRENT_QUERIES,
  MAX_FURTHER_NODES,
  QUERIED_NODES,
} from '../../../src/storage/redis/cluster/cluster-finder.js';
import { MAX_CLUSTER_NODES } from '../../../src/storage/redis/cluster/cluster-nodes.js';
import { MAX_REDIRECTIONS } from '../../../src/storage/redis/cluster/redirect.js';
import { MAX_RECEIVED_BYTES } from '../../../src/storage/redis/connection/client/own-connector.js';
import { TOTAL_TIMEOUT_MS } from '../../../src/storage/redis/connection/client/query-client.js';
import {
  ATTEMPTS_AT_ONCE,
  PAUSE_PER_SERVER_MS,
} from '../../../src/storage/redis/connection/connection-attempts.js';
import { MAX_SERVERS } from '../../../src/storage/redis/connection/named-servers.js';
import { MAX_SMALL_ITEMS, QUANTUM_ITEMS } from '../../../src/storage/redis/large-take-queue.js';
import { MAX_LARGE_ITEMS_IN_FLIGHT } from '../../../src/storage/redis/large-take-sender.js';
import { RESPONSIVE_MICROS } from '../../../src/storage/redis/load/redis-load.js';
import { MAX_TAKES_PER_CALL } from '../../../src/storage/redis/open-batches.js';
import { MAX_PENDING_REQUESTS } from '../../../src/storage/redis/script-requests/script-requests.js';
import {
  type BoundGroup,
  CONNECTION_ENDS,
  SHARED_FAIRLY,
  shownCount,
  shownSetting,
  shownSize,
  shownTime,
} from './bound-texts.js';

const UPDATE_REJECTED = 'weir sends a NACK with the reason, and the previous policies stay in effect';
const FILE_REJECTED =
  'weir logs an error; weir then does not start, but keeps the previous content on a reload';

/** Bounds of Redis and management servers. */
export const REDIS_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'Redis and management servers',
    bounds: [
      {
        what: 'limits in one call to Redis',
        bound: `${shownCount(MAX_TAKES_PER_CALL)}, or the limits of one request`,
        beyond: 'the next call contains the rest',
      },
      {
        what: 'total number of limits in waiting requests, for each Redis server or cluster node',
        bound: `${shownSetting('REDIS_MAX_IN_FLIGHT')}, ${SHARED_FAIRLY}`,
        beyond:
          'OVER_LIMIT if a rule could deny the request; `on_store_failure` if Redis has not answered for ' +
          `${shownTime(RESPONSIVE_MICROS / 1000)}`,
      },
      {
        what: `total number of limits in waiting large requests (requests with more than ${MAX_SMALL_ITEMS} limits)`,
        bound:
          '`REDIS_MAX_IN_FLIGHT` for all connections. The waiting requests of one connection may not ' +
          'exceed the remaining capacity. In addition, connections without waiting requests may together ' +
          `use the same number again, in requests with at most ${QUANTUM_ITEMS} limits.`,
        beyond:
          'OVER_LIMIT if a rule could deny the request, otherwise OK; weir gives the same answer if the ' +
          'deadline passes while Redis serves other requests',
      },
      {
        what: 'limits in unanswered calls to Redis for large requests',
        bound: `${shownCount(MAX_LARGE_ITEMS_IN_FLIGHT)}, or the limits of one request`,
        beyond: 'connections take turns',
      },
      {
        what: 'memory of decoded requests that wait for Redis, including canceled calls',
        bound:
          `${shownSize(MAX_STORE_WAITING_BYTES)} (\`weir_store_waiting_bytes\`), ${SHARED_FAIRLY}. ` +
          `${shownSize(SMALL_REQUEST_RESERVE_BYTES)} are reserved for requests of at most ` +
          `${shownSize(MAX_SMALL_REQUEST_BYTES)}.`,
        beyond:
          'OVER_LIMIT if a rule could deny the request, otherwise OK; `on_store_failure` if Redis is ' +
          `unavailable or has not answered for ${shownTime(RESPONSIVE_MICROS / 1000)}`,
      },
      {
        what: 'a reply from Redis',
        bound: 'only the expected number of integers, each from −2^53 to 2^53−1',
        beyond: `${CONNECTION_ENDS}, and \`on_store_failure\` applies to the calls on this connection`,
      },
      {
        what: 'a number stored in Redis',
        bound: '2^53−1',
        beyond: 'weir treats the bucket as empty, or the window as used up',
      },
      {
        what: 'Sentinels in an address; cluster nodes in an address',
        bound: `${MAX_SERVERS}; ${MAX_SERVERS}`,
        beyond: 'weir does not start',
      },
      {
        what: 'masters in a cluster, including former masters',
        bound: shownCount(MAX_CLUSTER_NODES),
        beyond: '`on_store_failure` applies to slots of further masters',
      },
      {
        what: 'cluster nodes that weir asks for the slot assignment',
        bound:
          `all configured nodes at startup; later ${QUERIED_NODES} nodes, and if none of them answers, up ` +
          `to ${MAX_FURTHER_NODES} further nodes, ${MAX_CONCURRENT_QUERIES} at a time`,
        beyond:
          'weir runs one update of the slot assignment at a time; until the update ends, calls use the ' +
          'known assignment',
      },
      {
        what: 'size of a reply about Sentinels or cluster nodes; duration of the query',
        bound: `${shownSize(MAX_RECEIVED_BYTES)}; ${shownTime(TOTAL_TIMEOUT_MS)}`,
        beyond: `${CONNECTION_ENDS}, and asks another server`,
      },
      {
        what: 'concurrent connection attempts to cluster nodes; connection attempts to unavailable nodes',
        bound:
          `${ATTEMPTS_AT_ONCE}; every ${shownTime(PAUSE_PER_SERVER_MS)}, one attempt to a node that was ` +
          'in use, and one attempt to any other node',
        beyond: 'further attempts wait; three of every four attempts go to nodes that were in use',
      },
      {
        what: 'cluster nodes that one call tries in succession',
        bound: `${MAX_REDIRECTIONS + 1}, within the call's deadline`,
        beyond: '`on_store_failure` applies',
      },
      {
        what: 'unanswered calls to Redis that list holds or announce filled buckets',
        bound: shownCount(MAX_PENDING_REQUESTS),
        beyond: 'weir sends no further calls',
      },
      {
        what: 'size of an announcement of filled buckets; size of all announcements',
        bound: `${shownSize(MAX_KEYS_BYTES)}; ${shownSize(MAX_BYTES)}`,
        beyond: 'all processes clear their deny caches; older announcements are dropped',
      },
      {
        what: 'resources in an xDS update; fields in an update',
        bound: `${shownCount(MAX_RESOURCES)}; ${shownCount(MAX_FIELDS)}`,
        beyond: UPDATE_REJECTED,
      },
      {
        what: 'size of an xDS update',
        bound: `\`XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES\`, at most ${shownSize(MAX_UPDATE_BYTES)}`,
        beyond: UPDATE_REJECTED,
      },
      {
        what: 'files and directories below `RUNTIME_ROOT`, or in a directory that `weir migrate` reads',
        bound: shownCount(MAX_LAYOUT_ENTRIES),
        beyond: 'weir reports an error, and reads none of the files',
      },
      {
        what: 'size of a policy file; number of errors that weir lists for one load',
        bound: `${shownSize(MAX_FILE_BYTES)}; ${shownCount(MAX_PROBLEMS)}`,
        beyond: 'the file is invalid; weir shows the number of further errors',
      },
      {
        what: 'size of a table of [plans](../policy/plans.md); number of rows',
        bound: `${shownSize(MAX_PLAN_BYTES)}; ${shownCount(MAX_PLAN_ROWS)}`,
        beyond: 'the file is invalid',
      },
      {
        what: 'characters of a customer in a table of plans',
        bound: String(MAX_KEY_UNITS),
        beyond: 'the row is invalid',
      },
      {
        what: 'size of a certificate or key that weir reloads; size of a login file',
        bound: `${shownSize(MAX_TLS_FILE_BYTES)}; ${shownSize(MAX_LOGIN_FILE_BYTES)}`,
        beyond: FILE_REJECTED,
      },
      {
        what: 'size of any other file that a setting or option specifies (a regular file, not a pipe or device)',
        bound: shownSize(MAX_NAMED_FILE_BYTES),
        beyond: FILE_REJECTED,
      },
      {
        what:
          'brackets, commas, colons, dashes and line breaks in a policy file that has anchors, tags, escapes or ' +
          'multi-line strings',
        bound: shownCount(MAX_MARKS),
        beyond: 'the file is invalid',
      },
    ],
  },
];
