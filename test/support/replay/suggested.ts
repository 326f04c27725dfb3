import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import type { Rule } from '../../../src/policy/rule.js';
import {
  type Demand,
  type Suggestion,
  type SuggestOptions,
  suggestLimits,
} from '../../../src/replay/suggest/suggest.js';
import { parse } from '../policy/policies.js';
import type { SimulatedLog } from './simulated-log.js';

/** Returns the suggestion for a simulated log. The descriptors are `tenant`, `path`. */
export function suggestionOf(log: SimulatedLog, options: SuggestOptions): Promise<Suggestion> {
  return suggested(demands(log), options);
}

/** Returns the suggestion for batches of descriptors; throws if it is refused. */
export async function suggested(
  batches: Iterable<Iterable<Demand>>,
  options: SuggestOptions,
): Promise<Suggestion> {
  const suggestion = await suggestLimits(batches, options);
  if ('refused' in suggestion) throw new Error(suggestion.refused);
  return suggestion;
}

function* demands(log: SimulatedLog): Generator<readonly Demand[]> {
  for (const requests of log.minutes()) {
    yield requests.map(({ startMicros, tenant, path }) => ({
      startMicros,
      entries: [
        { key: 'tenant', value: tenant },
        { key: 'path', value: path },
      ],
      hits: 1,
    }));
  }
}

/** Returns the rules of a policy by their paths; throws for an error or a warning. */
export function loadedRules(text: string): ReadonlyMap<string, Rule> {
  const { policy, problems } = parse(text);
  const found = [...problems.errors, ...problems.warnings].map(formatProblem);
  if (policy === undefined || found.length > 0) throw new Error(`${found.join('\n')}\n${text}`);
  return new Map(policy.rules.map((rule) => [rule.path, rule]));
}
