import { Counter } from 'prom-client';
import type { StorageFailure } from '../limiter/bucket-store.js';
import type { StoreFailurePolicy } from '../limiter/entry.js';
import type { FamilyRegistry } from './family-registry.js';
import { KNOWN_DOMAIN, type LabelMeanings } from './label-meanings.js';

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
const FAILURE_POLICIES: Readonly<Record<StoreFailurePolicy, string>> = {
  error: 'the call got an error',
  allow: 'the descriptor passed',
  deny: 'the descriptor was denied',
  local: 'buckets in memory decided',
};

/** Counters of what became of calls, of the store and of reloads. */
export function callCounters(registry: FamilyRegistry) {
  const registers = [registry];
  const counter = <Label extends string>(
    name: string,
    labels: LabelMeanings<Label>,
    help: string,
  ): Counter<Label> => new Counter({ name, help, labelNames: registry.labels(name, labels), registers });
  return {
    storeErrors: counter(
      'weir_store_errors_total',
      { reason: { meaning: 'Why there was no decision.', values: STORE_FAILURES } },
      'Requests that the store could not decide, by reason.',
    ),
    storeFailureAnswers: counter(
      'weir_store_failure_answers_total',
      { policy: { meaning: 'What `on_store_failure` of the rule says.', values: FAILURE_POLICIES } },
      'Descriptors answered by on_store_failure, by policy.',
    ),
    matchExceeded: counter(
      'weir_match_budget_exceeded_total',
      { domain: KNOWN_DOMAIN },
      'Requests whose matching took more work than a request may cause, by domain: OVER_LIMIT where a ' +
        'rule in force could have matched.',
    ),
    requestsGivenUp: counter(
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
    brokenInvariants: counter(
      'weir_broken_invariants_total',
      {},
      'States that must hold and did not: mistakes in weir; please report what the log says.',
    ),
    refused: counter(
      'weir_refused_total',
      {
        code: {
          meaning: 'The gRPC status, or for `/json` the one that gRPC would have answered.',
          values: {
            INVALID_ARGUMENT: 'the request was bad: 400 of `/json`',
            UNAVAILABLE: 'there was no policy, no store or no time, or the caller had gone: 503 of `/json`',
          },
        },
      },
      'Calls, by gRPC and to `/json`, that got no decision, by gRPC status code.',
    ),
    reloads: counter(
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
