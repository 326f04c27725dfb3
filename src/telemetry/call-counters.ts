import type { StorageFailure } from '../limiter/bucket-store.js';
import type { StoreFailureAnswer } from '../limiter/failure-policy.js';
import type { StoreFault } from '../limiter/store-fault.js';
import type { FamilyRegistry } from './family-registry.js';
import { KNOWN_DOMAIN, REDIS_ROLE } from './label-meanings.js';

export type CallCounters = ReturnType<typeof callCounters>;

/** Requests that fail because the store is `full` count as given up, not here. */
const STORE_FAILURES: Readonly<Record<Exclude<StorageFailure, 'full'>, string>> = {
  timeout: "Redis did not answer within REDIS_TIMEOUT or the caller's deadline",
  disconnected: 'no connection to Redis',
  overloaded: 'Redis does not answer, and too many limits are waiting for Redis (REDIS_MAX_IN_FLIGHT)',
  breaker_open: 'Redis failed several times in a row, so the circuit breaker is open',
  rejected: 'Redis returned an error',
  broken: 'a bug in weir; see weir_broken_invariants_total',
};
const FAILURE_POLICIES: Readonly<Record<StoreFailureAnswer, string>> = {
  error: 'the call got an error',
  allow: 'the descriptor was allowed',
  deny: 'the descriptor was denied',
  local: 'local buckets decided the request',
};

const REDIS_FAULTS: Readonly<Record<StoreFault, string>> = {
  refused: 'no server or Sentinel accepts the connection, or the host name is unknown',
  lost: 'the connection was lost',
  no_answer: 'Redis did not answer in time',
  tls: 'TLS failed: an invalid certificate, or plain text on one side',
  wrongpass: 'Redis refuses the login or a command of its user',
  login_source: 'REDIS_AUTH_FILE provides no login; weir uses the last login',
  readonly: 'Redis is a replica; weir looks for the master',
  loading:
    'Redis accepts no commands or no writes: it loads its data, runs a script, cannot save to disk, or lacks replicas',
  oom: 'maxmemory is reached',
  max_clients: 'Redis has reached its maximum number of connections',
  moved: 'Redis no longer serves the slots, or the Sentinels announced another master',
  not_redis: 'the server is not a Redis that weir supports: another program, a Sentinel or a sharding proxy',
  other: 'any other error; see the log',
};

/** The reasons for an answer without a decision, with their meanings. */
export const GIVEN_UP_REASONS = {
  request_bytes: 'the message was longer than MAX_REQUEST_BYTES',
  descriptors: 'the request had more descriptors than MAX_DESCRIPTORS',
  entries: 'the request had more entries than MAX_ENTRIES',
  limits: 'the request met more limits than MAX_LIMITS',
  regex_value: 'a value for a regular expression was longer than MAX_REGEX_VALUE_BYTES',
  match_work: 'matching needed more work than MAX_MATCH_WORK',
  hold_token: 'the request would have placed too many holds for one hold token',
  late: 'a large request waited too long for its turn',
  full: 'too many large requests, or too many requests for Redis, were waiting',
} as const;

/** Creates the counters of failed calls, store faults and reloads. */
export function callCounters(registry: FamilyRegistry) {
  return {
    storeErrors: registry.events(
      'weir_store_errors_total',
      { reason: { meaning: 'The reason.', values: STORE_FAILURES } },
      'Requests that the store could not decide, by reason.',
    ),
    redisFaults: registry.events(
      'weir_redis_faults_total',
      {
        redis: REDIS_ROLE,
        reason: { meaning: 'The reason.', values: REDIS_FAULTS },
      },
      'Error replies from Redis, and failed or lost connections, by reason.',
    ),
    storeFailureAnswers: registry.events(
      'weir_store_failure_answers_total',
      { policy: { meaning: 'The value of `on_store_failure`.', values: FAILURE_POLICIES } },
      'Descriptors answered by on_store_failure, by its value.',
    ),
    requestsGivenUp: registry.events(
      'weir_requests_given_up_total',
      {
        domain: KNOWN_DOMAIN,
        reason: { meaning: 'The reason.', values: GIVEN_UP_REASONS },
      },
      'Requests answered without a decision, by domain and reason. They get OVER_LIMIT if a rule of the domain can ' +
        'deny, and OK otherwise.',
    ),
    brokenInvariants: registry.events(
      'weir_broken_invariants_total',
      {},
      'Internal errors that should be impossible. Each of these errors is a bug in weir. Please report the log line.',
    ),
    refused: registry.events(
      'weir_refused_total',
      {
        code: {
          meaning: 'The gRPC status, also for `/json`.',
          values: {
            INVALID_ARGUMENT: 'invalid request; HTTP 400 for `/json`',
            UNAVAILABLE: 'no policy, no store, no time left, or canceled by the caller; HTTP 503 for `/json`',
            PERMISSION_DENIED: 'a page from another site made the call; HTTP 403 or 421 for `/json`',
          },
        },
      },
      'Calls over gRPC and `/json` without a decision, by gRPC status code.',
    ),
    reloads: registry.events(
      'weir_config_reloads_total',
      {
        result: {
          meaning: 'The result of the reload.',
          values: {
            success: 'all policies were loaded',
            error: 'a policy is invalid, and its previous version stays in effect',
          },
        },
      },
      'Policy reloads, by result.',
    ),
  };
}
