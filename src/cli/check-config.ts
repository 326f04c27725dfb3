import { type LoadedPolicies, loadPolicies } from '../config/files/load-policies.js';
import { countProblems, formatProblem } from '../config/yaml/config-problem.js';
import type { CompiledPolicy } from '../policy/compiled-policy.js';
import { shellText } from '../runtime/printable.js';
import { plural } from '../runtime/texts.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io, usageError } from './io.js';
import { LOAD_OPTIONS, readLoadOptions } from './load-options.js';

/** Runs `weir check-config`: prints errors and warnings to standard error, and a summary to standard output. */
export async function runCheckConfig(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readArguments('check-config', args, LOAD_OPTIONS);
  if (positionals.length === 0)
    throw usageError('check-config', 'specify at least one policy file or directory');
  const options = readLoadOptions('check-config', values);
  const loaded = loadPolicies(positionals, { ...options, emptyIsError: true, badRowsAreErrors: true });
  const { errors, warnings, files } = loaded;
  for (const warning of warnings) io.err(`warning: ${formatProblem(warning)}\n`);
  for (const error of errors) io.err(`${formatProblem(error)}\n`);
  if (errors.length > 0) {
    for (const line of domainStateLines(loaded)) io.err(`${line}\n`);
    const count = countProblems(errors);
    io.err(`${plural(count, 'error')}\n`);
    return EXIT.FAILED;
  }
  const domains = validDomains(loaded).join(', ') || 'no domains';
  io.out(`ok: ${plural(files.length, 'file')}, ${domains}\n`);
  return EXIT.OK;
}

/** Formats each valid domain: `open-api (5 rules)`. */
function validDomains({ policySet }: LoadedPolicies): readonly string[] {
  return [...policySet.domains.values()].map(
    (policy) => `${shellText(policy.domain)} (${ruleCounts(policy)})`,
  );
}

/** Formats the content of a policy: `5 rules`, or `5 rules, 3 rows of plans`. */
function ruleCounts({ rules, plans }: CompiledPolicy): string {
  const rows = plans === undefined ? '' : `, ${plural(plans.rowCount, 'row')} of plans`;
  return `${plural(rules.length, 'rule')}${rows}`;
}

/** Lists the domains that `weir serve` would load, and those that would fail to load. */
function domainStateLines(loaded: LoadedPolicies): readonly string[] {
  const invalid = loaded.domains.filter(({ state }) => state !== 'ok').map(({ domain }) => shellText(domain));
  const valid = validDomains(loaded);
  return [
    ...(valid.length === 0 ? [] : [`domains that would load: ${valid.join(', ')}`]),
    ...(invalid.length === 0 ? [] : [`domains that would fail to load: ${invalid.join(', ')}`]),
  ];
}
