import { MAX_LAYOUT_ENTRIES } from '../../../src/config/files/policy-paths.js';
import { MAX_RESOURCES, MAX_UPDATE_BYTES } from '../../../src/config/xds/envelope.js';
import { MAX_FIELDS } from '../../../src/config/xds/load-update.js';
import { MAX_PROBLEMS } from '../../../src/config/yaml/config-problem.js';
import { MAX_FILE_BYTES, MAX_MARKS } from '../../../src/config/yaml/yaml-bounds.js';
import { MAX_LOGIN_FILE_BYTES } from '../../../src/server/login-file.js';
import { MAX_NAMED_FILE_BYTES } from '../../../src/server/settings/named-file.js';
import { MAX_TLS_FILE_BYTES } from '../../../src/server/tls-files.js';
import {
  MAX_SMALL_REQUEST_BYTES,
  MAX_STORE_WAITING_BYTES,
  SMALL_REQUEST_RESERVE_BYTES,
} from '../../../src/service/waiting-requests.js';
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
import {
  MAX_LOGIN_OUTPUT_BYTES,
  PROGRAM_TIMEOUT_MS,
} from '../../../src/storage/redis/connection/login/run-program.js';
import { MAX_SERVERS } from '../../../src/storage/redis/connection/named-servers.js';
import { MAX_SMALL_ITEMS, QUANTUM_ITEMS } from '../../../src/storage/redis/large-take-queue.js';
import { MAX_LARGE_ITEMS_IN_FLIGHT } from '../../../src/storage/redis/large-take-sender.js';
import { RESPONSIVE_MICROS } from '../../../src/storage/redis/load/redis-load.js';
import { MAX_TAKES_PER_CALL } from '../../../src/storage/redis/open-batches.js';
import {
  type BoundGroup,
  CONNECTION_ENDS,
  SCARCE_ROOM,
  shownCount,
  shownSetting,
  shownSize,
  shownTime,
} from './bound-texts.js';

/** Bounds of Redis and management servers. */
export const REDIS_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'Redis and management servers',
    bounds: [
      {
        what: 'limits in one call to Redis',
        bound: `${shownCount(MAX_TAKES_PER_CALL)}, or one request`,
        beyond: 'the next call contains the rest',
      },
      {
        what: 'limits that wait for Redis, or for a node of a cluster; a request counts once for each limit',
        bound: `${shownSetting('REDIS_MAX_IN_FLIGHT')}; ${SCARCE_ROOM}`,
        beyond:
          'OVER_LIMIT if a rule could deny the request; `on_store_failure` if Redis has not answered for ' +
          `${shownTime(RESPONSIVE_MICROS / 1000)}`,
      },
      {
        what: `limits of large requests (more than ${MAX_SMALL_ITEMS} limits), which wait in a queue of their own`,
        bound:
          'the same number again, and a connection may use as much as is still free; the same number once more ' +
          `for requests of at most ${QUANTUM_ITEMS} limits from connections without waiting requests; Redis ` +
          `gets ${MAX_LARGE_ITEMS_IN_FLIGHT} limits, or one request, at a time, and connections take turns`,
        beyond:
          'OVER_LIMIT if a rule could deny the request, otherwise OK; also if the deadline passes while Redis ' +
          'serves other requests',
      },
      {
        what: 'decoded requests that wait for Redis, including canceled calls',
        bound:
          `${shownSize(MAX_STORE_WAITING_BYTES)} (\`weir_store_waiting_bytes\`), of which ` +
          `${shownSize(SMALL_REQUEST_RESERVE_BYTES)} are reserved for requests of at most ` +
          `${shownSize(MAX_SMALL_REQUEST_BYTES)}; ${SCARCE_ROOM}`,
        beyond:
          'OVER_LIMIT if a rule could deny the request, otherwise OK; `on_store_failure` if Redis is ' +
          `unavailable or has not answered for ${shownTime(RESPONSIVE_MICROS / 1000)}`,
      },
      {
        what: 'a reply of Redis',
        bound: 'the expected number of integers from −2^53 to 2^53−1',
        beyond: `${CONNECTION_ENDS}, and \`on_store_failure\` answers its calls`,
      },
      {
        what: 'a number stored in Redis',
        bound: '2^53−1',
        beyond: 'the bucket counts as empty, and the window as used up',
      },
      {
        what: 'Sentinels in an address; nodes of a cluster in an address',
        bound: `${MAX_SERVERS}; ${MAX_SERVERS}`,
        beyond: 'weir does not start',
      },
      {
        what: 'masters of a cluster, including former masters',
        bound: shownCount(MAX_CLUSTER_NODES),
        beyond: '`on_store_failure` answers for slots of further masters',
      },
      {
        what: 'nodes of a cluster that weir asks for the slots',
        bound:
          `all configured nodes at the start; later ${QUERIED_NODES}, and if none of them answers, up to ` +
          `${MAX_FURTHER_NODES} others, ${MAX_CONCURRENT_QUERIES} at a time`,
        beyond: 'one such update at a time; meanwhile calls use the known slots',
      },
      {
        what: 'reply of a Sentinel or node about others; its duration',
        bound: `${shownSize(MAX_RECEIVED_BYTES)}; ${shownTime(TOTAL_TIMEOUT_MS)}`,
        beyond: `${CONNECTION_ENDS} and asks others`,
      },
      {
        what: 'concurrent attempts to connect to nodes of a cluster; attempts for unavailable nodes',
        bound:
          `${ATTEMPTS_AT_ONCE}; every ${shownTime(PAUSE_PER_SERVER_MS)}, one for nodes that were in use and one ` +
          'for other nodes',
        beyond: 'the rest waits; nodes that were in use get three of four turns',
      },
      {
        what: 'nodes of a cluster that a call tries in sequence',
        bound: `${MAX_REDIRECTIONS + 1}, within its deadline`,
        beyond: '`on_store_failure` answers',
      },
      {
        what: 'a command that prints a login: its duration; its output',
        bound: `${shownTime(PROGRAM_TIMEOUT_MS)}; ${shownSize(MAX_LOGIN_OUTPUT_BYTES)}`,
        beyond: 'weir kills the command and keeps the previous login',
      },
      {
        what: 'resources, fields and bytes of an xDS update',
        bound:
          `${shownCount(MAX_RESOURCES)}; ${shownCount(MAX_FIELDS)}; \`XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES\`, at most ` +
          `${shownSize(MAX_UPDATE_BYTES)}`,
        beyond: 'NACK with the reason; the previous policies stay in effect',
      },
      {
        what: 'files and directories below `RUNTIME_ROOT`, or below the directory of `weir migrate`',
        bound: shownCount(MAX_LAYOUT_ENTRIES),
        beyond: 'an error; weir reads none of the files',
      },
      {
        what: 'a policy file; listed errors of a load',
        bound: `${shownSize(MAX_FILE_BYTES)}; ${shownCount(MAX_PROBLEMS)}`,
        beyond: 'the file is invalid; weir counts the rest',
      },
      {
        what:
          'other files of settings and options; certificates and keys that weir reloads; a login file. weir ' +
          'reads only regular files, no pipes or devices',
        bound: [MAX_NAMED_FILE_BYTES, MAX_TLS_FILE_BYTES, MAX_LOGIN_FILE_BYTES].map(shownSize).join('; '),
        beyond:
          'weir does not read the file; it does not start, or keeps the previous content, and logs the file and ' +
          'the setting',
      },
      {
        what:
          'brackets, commas, colons, dashes and line ends of a policy file with anchors, tags, escapes or ' +
          'multi-line strings',
        bound: shownCount(MAX_MARKS),
        beyond: 'the file is invalid',
      },
    ],
  },
];
