import type { StorageFailure } from '../limiter/bucket-store.js';
import type { StoreFailureAnswer } from '../limiter/failure-policy.js';
import type { StoreFault } from '../limiter/store-fault.js';
import type { FamilyRegistry } from './family-registry.js';
import { KNOWN_DOMAIN, REDIS_ROLE } from './label-meanings.js';

export type CallCounters = ReturnType<typeof callCounters>;

/** A store that is `full` counts among the requests that were given up. */
const STORE_FAILURES: Readonly<Record<Exclude<StorageFailure, 'full'>, string>> = {
  timeout: 'Redis did not answer within REDIS_TIMEOUT, or before the deadline of the caller',
  disconnected: 'there is no connection to Redis, or it ended',
  overloaded: 'too many limits wait for a Redis that has gone silent (REDIS_MAX_IN_FLIGHT)',
  breaker_open: 'the circuit breaker is open: Redis failed several times in a row',
  rejected: 'Redis answered with an error',
  broken: 'a state of weir does not hold, see weir_broken_invariants_total',
};
const FAILURE_POLICIES: Readonly<Record<StoreFailureAnswer, string>> = {
  error: 'the call got an error',
  allow: 'the descriptor passed',
  deny: 'the descriptor was denied',
  local: 'buckets in memory decided',
};

const REDIS_FAULTS: Readonly<Record<StoreFault, string>> = {
  readonly: 'it is a replica, or became one: weir looks for the master',
  masterdown: 'it is a replica without its master: weir looks for the master',
  loading: 'it reads its data from disk: weir waits',
  busy: "somebody's script keeps it busy: weir waits",
  unkillable: "somebody's script keeps it busy, and cannot be ended: weir waits",
  noreplicas: 'too few replicas to write: weir waits',
  misconf: 'it cannot save to disk: weir waits',
  oom: 'it is full: maxmemory is reached',
  noauth: 'it wants a login: weir logs in anew',
  wrongpass: 'it refuses the login: weir asks for a new one',
  noperm: 'the user may not do what weir does: weir waits',
  login_source:
    'no new login could be had from REDIS_AUTH_COMMAND or REDIS_AUTH_FILE: weir uses the last one',
  noscript: 'it does not know the script, not even when it is sent along',
  no_time: 'it does not tell scripts the time: see REDIS_CLOCK',
  cluster: 'it is a node of a Redis Cluster, or one that no longer serves its slots',
  cluster_down: 'its cluster lacks a master, or slots',
  no_cluster: 'no node says which one serves which slots, or they are of two clusters',
  protected_mode: 'it takes no connections from other machines',
  max_clients: 'it has as many connections as it may have',
  not_redis: 'it does not know the commands of a Redis: a Sentinel, for example',
  proxy: 'a proxy that shards answers there: see REDIS_TYPE',
  upstream: 'the proxy does not reach a Redis behind it',
  no_database: 'it does not have the database',
  refused: 'nothing listens there',
  unknown_host: 'its name is unknown',
  protocol: 'what answers there does not speak the protocol of Redis',
  tls: 'TLS failed: a certificate, or clear text on one side',
  no_answer: 'it did not answer in time',
  lost: 'the connection ended',
  moved: 'the Sentinels announced another master',
  no_master: 'no Sentinel names a master',
  other: 'anything else: the log says what',
};

/** Counters of what became of calls, of the store and of reloads. */
export function callCounters(registry: FamilyRegistry) {
  return {
    storeErrors: registry.events(
      'weir_store_errors_total',
      { reason: { meaning: 'Why there was no decision.', values: STORE_FAILURES } },
      'Requests that the store could not decide, by reason.',
    ),
    redisFaults: registry.events(
      'weir_redis_faults_total',
      {
        redis: REDIS_ROLE,
        reason: { meaning: 'What went wrong.', values: REDIS_FAULTS },
      },
      'Errors that Redis answered, and connections to it that failed or ended, by reason.',
    ),
    storeFailureAnswers: registry.events(
      'weir_store_failure_answers_total',
      { policy: { meaning: 'What `on_store_failure` of the rule says.', values: FAILURE_POLICIES } },
      'Descriptors answered by on_store_failure, by policy.',
    ),
    matchExceeded: registry.events(
      'weir_match_budget_exceeded_total',
      { domain: KNOWN_DOMAIN },
      'Requests whose matching took more work than a request may cause, by domain: OVER_LIMIT where a ' +
        'rule in force could have matched.',
    ),
    requestsGivenUp: registry.events(
      'weir_requests_given_up_total',
      {
        domain: KNOWN_DOMAIN,
        reason: {
          meaning: 'Why it was not looked at.',
          values: {
            late: 'its turn did not come in time',
            full: 'there was no room for it, in the queue or among those that wait for Redis',
          },
        },
      },
      'Costly requests answered before they were looked at, by domain and reason: late (too long in ' +
        'the queue), full (no room in it).',
    ),
    brokenInvariants: registry.events(
      'weir_broken_invariants_total',
      {},
      'States that must hold and did not: mistakes in weir; please report what the log says.',
    ),
    refused: registry.events(
      'weir_refused_total',
      {
        code: {
          meaning: 'The gRPC status, or for `/json` the one that gRPC would have answered.',
          values: {
            INVALID_ARGUMENT: 'the request was bad: 400 of `/json`',
            UNAVAILABLE: 'there was no policy, no store or no time, or the caller had gone: 503 of `/json`',
            PERMISSION_DENIED: 'a page of another site made the call: 403 or 421 of `/json`',
          },
        },
      },
      'Calls, by gRPC and to `/json`, that got no decision, by gRPC status code.',
    ),
    reloads: registry.events(
      'weir_config_reloads_total',
      {
        result: {
          meaning: 'What became of the reload.',
          values: {
            success: 'what was read is in force',
            error: 'something is bad and keeps its last good version',
          },
        },
      },
      'Reloads of the policies, by result.',
    ),
  };
}
