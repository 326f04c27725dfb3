import { loadPolicies } from '../config/files/load-policies.js';
import { type ExplainedRule, explain } from '../config/show/explain.js';
import { explanationJson } from '../config/show/explain-json.js';
import { renderExplanation } from '../config/show/explain-text.js';
import { formatProblem } from '../config/yaml/config-problem.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { readArguments, readEntries } from './arguments.js';
import { bucketPlaceOf } from './bucket-place.js';
import { EXIT, type Io } from './io.js';
import { LOAD_OPTIONS, readLoadOptions } from './load-options.js';
import { severalDomains } from './value-text.js';

const OPTIONS = {
  domain: { type: 'string' },
  json: { type: 'boolean' },
  redis: { type: 'boolean' },
  ...LOAD_OPTIONS,
} as const;

/**
 * Returns the domain in `--domain`, or the only domain of the policy. Returns an error message if the policy has
 * several domains or none.
 */
function chooseDomain(policies: PolicySet, asked: string | undefined): { domain: string } | string {
  if (asked !== undefined) return { domain: asked };
  const domains = [...policies.domains.keys()];
  const [only] = domains;
  if (only === undefined) {
    return 'weir explain: the policy has no domain; specify a policy with at least one domain\n';
  }
  return domains.length === 1 ? { domain: only } : `weir explain: ${severalDomains('policy', domains)}\n`;
}

/** Runs `weir explain`. Resolves with exit code 0 if a rule matches and, with `--redis`, every lookup succeeded. */
export async function runExplain(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('explain', args, OPTIONS);
  if (typeof parsed === 'string') {
    io.err(parsed);
    return EXIT.USAGE;
  }
  const [path, ...words] = parsed.positionals;
  const entries = readEntries('explain', words);
  if (path === undefined || typeof entries === 'string' || entries.length === 0) {
    const missing =
      'weir explain: specify a policy file and at least one key=value; see weir explain --help\n';
    io.err(typeof entries === 'string' ? entries : missing);
    return EXIT.USAGE;
  }
  const options = readLoadOptions('explain', parsed.values, io);
  if (typeof options === 'string') {
    io.err(options);
    return EXIT.USAGE;
  }
  const { policySet, errors } = loadPolicies([path], options);
  if (errors.length > 0) {
    io.err(errors.map((error) => `${formatProblem(error)}\n`).join(''));
    return EXIT.FAILED;
  }
  const chosen = chooseDomain(policySet, parsed.values.domain);
  if (typeof chosen === 'string') {
    io.err(chosen);
    return EXIT.USAGE;
  }
  // The Redis client is loaded only for `--redis`, because loading it takes time.
  const redis = parsed.values.redis === true ? await import('./explain-redis.js') : undefined;
  const settings = redis?.redisSettings(io.environment);
  if (settings !== undefined && 'sentences' in settings) {
    io.err(settings.sentences.map((sentence) => `weir explain: ${sentence}\n`).join(''));
    return EXIT.FAILED;
  }
  const wallMicros = Date.now() * 1000;
  const explanation = explain(policySet, chosen.domain, entries, options.holdEntry);
  const found = settings && (await redis?.findPlaces(explanation.rules, settings, io));
  const place = (rule: ExplainedRule) => (found === undefined ? bucketPlaceOf(rule) : found.places.get(rule));
  io.out(
    parsed.values.json === true
      ? `${JSON.stringify(explanationJson(explanation, wallMicros, place), null, 2)}\n`
      : renderExplanation(explanation, wallMicros, place),
  );
  for (const sentence of found?.sentences ?? []) io.err(`weir explain: ${sentence}\n`);
  if (found !== undefined && found.sentences.length > 0) return EXIT.FAILED;
  return explanation.rules.length > 0 ? EXIT.OK : EXIT.FAILED;
}
