import { loadPolicies } from '../config/files/load-policies.js';
import { type ExplainedRule, explain } from '../config/show/explain.js';
import { explanationJson, renderExplanation } from '../config/show/explain-text.js';
import { formatProblem } from '../config/yaml/config-problem.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { readArguments, readEntries } from './arguments.js';
import { bucketPlaceOf } from './explain-redis.js';
import { CommandError, EXIT, type Io, usageError } from './io.js';
import { LOAD_OPTIONS, readLoadOptions } from './load-options.js';
import { severalDomains } from './table.js';

const OPTIONS = {
  domain: { type: 'string' },
  json: { type: 'boolean' },
  redis: { type: 'boolean' },
  ...LOAD_OPTIONS,
} as const;

/** Returns the domain in `--domain`, or the only domain of the policy. Throws if it has several domains or none. */
function chooseDomain(policies: PolicySet, asked: string | undefined): string {
  if (asked !== undefined) return asked;
  const domains = [...policies.domains.keys()];
  const [only] = domains;
  if (only === undefined)
    throw new CommandError(EXIT.USAGE, 'the policy has no domain; specify a policy with at least one domain');
  if (domains.length > 1) throw severalDomains('policy', domains);
  return only;
}

/** Runs `weir explain`. Resolves with exit code 0 if a rule matches and, with `--redis`, every lookup succeeded. */
export async function runExplain(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readArguments('explain', args, OPTIONS);
  const [path, ...words] = positionals;
  const entries = readEntries('explain', 'the policy path', words, 2);
  if (path === undefined || entries.length === 0)
    throw usageError('explain', 'specify a policy file and at least one key=value');
  const options = readLoadOptions('explain', values);
  const { policySet, errors } = loadPolicies([path], options);
  if (errors.length > 0) {
    io.err(errors.map((error) => `${formatProblem(error)}\n`).join(''));
    return EXIT.FAILED;
  }
  const domain = chooseDomain(policySet, values.domain);
  // The Redis client is loaded only for `--redis`, because loading it takes time.
  const redis = values.redis === true ? await import('./explain-redis.js') : undefined;
  const settings = redis?.redisSettings(io.environment);
  const wallMicros = Date.now() * 1000;
  const explanation = explain(policySet, domain, entries, options.holdEntry);
  const found = settings && (await redis?.findPlaces(explanation.rules, settings, io));
  const place = (rule: ExplainedRule) => (found === undefined ? bucketPlaceOf(rule) : found.places.get(rule));
  io.out(
    values.json === true
      ? `${JSON.stringify(explanationJson(explanation, wallMicros, place), null, 2)}\n`
      : renderExplanation(explanation, wallMicros, place),
  );
  for (const sentence of found?.sentences ?? []) io.err(`weir explain: ${sentence}\n`);
  if (found !== undefined && found.sentences.length > 0) return EXIT.FAILED;
  return explanation.rules.length > 0 ? EXIT.OK : EXIT.FAILED;
}
