import { Counter } from 'prom-client';
import type { FamilyRegistry } from './family-registry.js';

export type CallCounters = ReturnType<typeof callCounters>;

/** Counters of what became of calls, of the store and of reloads. */
export function callCounters(registry: FamilyRegistry) {
  const registers = [registry];
  const counter = <Label extends string>(
    name: string,
    labelNames: readonly Label[],
    help: string,
  ): Counter<Label> => new Counter({ name, help, labelNames: [...labelNames], registers });
  return {
    storeErrors: counter(
      'weir_store_errors_total',
      ['reason'],
      'Requests that the store could not decide, by reason.',
    ),
    storeFailureAnswers: counter(
      'weir_store_failure_answers_total',
      ['policy'],
      'Descriptors answered by on_store_failure, by policy.',
    ),
    matchExceeded: counter(
      'weir_match_budget_exceeded_total',
      ['domain'],
      'Requests whose matching took more work than a request may cause, by domain: OVER_LIMIT where a ' +
        'rule in force could have matched.',
    ),
    requestsGivenUp: counter(
      'weir_requests_given_up_total',
      ['domain', 'reason'],
      'Costly requests answered before they were looked at, by domain and reason: late (too long in ' +
        'the queue), full (no room in it).',
    ),
    brokenInvariants: counter(
      'weir_broken_invariants_total',
      [],
      'States that must hold and did not: mistakes in weir; please report what the log says.',
    ),
    refused: counter('weir_refused_total', ['code'], 'Calls that got no decision, by gRPC status code.'),
    reloads: counter(
      'weir_config_reloads_total',
      ['result'],
      'Policy reloads by result: success or error (the old policy stays).',
    ),
  };
}
