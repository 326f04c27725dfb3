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
import { ASKED_AT_ONCE, MORE_ASKED, NODES_ASKED } from '../../../src/storage/redis/cluster/cluster-finder.js';
import { MAX_CLUSTER_NODES } from '../../../src/storage/redis/cluster/cluster-nodes.js';
import { MAX_REDIRECTIONS } from '../../../src/storage/redis/cluster/redirect.js';
import { WHOLE_PATIENCE_MS } from '../../../src/storage/redis/connection/client/asking-client.js';
import { MAX_ASKED_BYTES } from '../../../src/storage/redis/connection/client/own-connector.js';
import {
  ATTEMPTS_AT_ONCE,
  PAUSE_PER_SERVER_MS,
} from '../../../src/storage/redis/connection/connection-attempts.js';
import {
  MAX_LOGIN_OUTPUT_BYTES,
  PROGRAM_TIMEOUT_MS,
} from '../../../src/storage/redis/connection/login/run-program.js';
import { MAX_SERVERS } from '../../../src/storage/redis/connection/named-servers.js';
import { LIVELY_MICROS } from '../../../src/storage/redis/load/redis-load.js';
import { MAX_TAKES_PER_CALL } from '../../../src/storage/redis/open-batches.js';
import { WIDE_ITEMS_IN_FLIGHT } from '../../../src/storage/redis/wide-sender.js';
import { NARROW_ITEMS, QUANTUM_ITEMS } from '../../../src/storage/redis/wide-takes.js';
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
        what: 'takes in one call to Redis',
        bound: `${shownCount(MAX_TAKES_PER_CALL)}, or one request`,
        beyond: 'the next call takes them',
      },
      {
        what: 'limits that wait for a Redis, or for one node of a cluster, a request counting for each that it meets',
        bound: `${shownSetting('REDIS_MAX_IN_FLIGHT')}; ${SCARCE_ROOM}`,
        beyond:
          `OVER_LIMIT if a rule that the request meets may deny; \`on_store_failure\` answers if Redis ` +
          `was silent for ${shownTime(LIVELY_MICROS / 1000)}`,
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
          `${shownSize(MAX_STORE_WAITING_BYTES)}, ${shownSize(SMALL_REQUEST_RESERVE_BYTES)} of them for ` +
          `requests of at most ${shownSize(MAX_SMALL_REQUEST_BYTES)}; ${SCARCE_ROOM}; \`weir_store_waiting_bytes\``,
        beyond:
          'OVER_LIMIT if a rule that the request meets may deny, else as if nothing matched; ' +
          '`on_store_failure` answers if Redis is away or ' +
          `was silent for ${shownTime(LIVELY_MICROS / 1000)}`,
      },
      {
        what: 'a reply of Redis',
        bound: 'as many whole numbers, from −2^53 to 2^53−1, as were asked for',
        beyond: `${CONNECTION_ENDS}, \`on_store_failure\` answers its calls`,
      },
      {
        what: 'a number stored in Redis',
        bound: '2^53−1',
        beyond: 'the bucket counts as empty, the window as used up',
      },
      {
        what: 'Sentinels, and nodes of a cluster, that an address names',
        bound: `${MAX_SERVERS}; ${MAX_SERVERS}`,
        beyond: 'the start is refused',
      },
      {
        what: 'masters of a cluster, those that are left behind by a move included',
        bound: shownCount(MAX_CLUSTER_NODES),
        beyond: '`on_store_failure` answers for slots of further ones',
      },
      {
        what: 'nodes of a cluster that are asked at a time which of them serves which slots',
        bound:
          `all that are named, at the start; then ${NODES_ASKED}, and where none of these answers up to ` +
          `${MORE_ASKED} others, ${ASKED_AT_ONCE} at a time`,
        beyond: 'one look at a time; calls go on meanwhile by what is known',
      },
      {
        what: 'what a Sentinel, or a node of a cluster, says when it is asked about others',
        bound: `${shownSize(MAX_ASKED_BYTES)}; ${shownTime(WHOLE_PATIENCE_MS)}`,
        beyond: `${CONNECTION_ENDS}; others are asked`,
      },
      {
        what: 'attempts to connect to nodes of a cluster; attempts for nodes that are away',
        bound:
          `${ATTEMPTS_AT_ONCE} at a time; one each ${shownTime(PAUSE_PER_SERVER_MS)} of all nodes that were in use, ` +
          'and one of all others',
        beyond: 'others wait; nodes that were in use have three of four turns',
      },
      {
        what: 'nodes of a cluster that a call is sent to, one after the other',
        bound: `${MAX_REDIRECTIONS + 1}, within its time`,
        beyond: '`on_store_failure` answers',
      },
      {
        what: 'a program that prints a login',
        bound: `${shownTime(PROGRAM_TIMEOUT_MS)}; ${shownSize(MAX_LOGIN_OUTPUT_BYTES)}`,
        beyond: 'it is killed; the login before stays in use',
      },
      {
        what: 'resources, fields and bytes of an xDS update',
        bound:
          `${shownCount(MAX_RESOURCES)}; ${shownCount(MAX_FIELDS)}; \`XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES\`, at most ` +
          `${shownSize(MAX_UPDATE_BYTES)}`,
        beyond: 'NACK in a sentence; the old policy stays',
      },
      {
        what: 'files and directories below `RUNTIME_ROOT`, or the directory that `weir migrate` is given',
        bound: shownCount(MAX_LAYOUT_ENTRIES),
        beyond: 'an error, and nothing there is read',
      },
      {
        what: 'a policy file; errors listed of a load',
        bound: `${shownSize(MAX_FILE_BYTES)}; ${shownCount(MAX_PROBLEMS)}`,
        beyond: 'the file is refused; the rest is counted',
      },
      {
        what:
          'another file that a setting or an option names; certificates and keys that are followed; a login in a ' +
          'file. Regular files only, no pipes and no devices',
        bound: [MAX_NAMED_FILE_BYTES, MAX_TLS_FILE_BYTES, MAX_LOGIN_FILE_BYTES].map(shownSize).join('; '),
        beyond:
          'refused before it is read: the start ends, or what was in force stays; the log names file and setting',
      },
      {
        what:
          'brackets, commas, colons, dashes and line ends of a policy file with anchors, tags, escapes ' +
          'or texts of several lines',
        bound: shownCount(MAX_MARKS),
        beyond: 'the file is refused',
      },
    ],
  },
];
