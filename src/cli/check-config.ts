import { formatProblem } from '../config/config-problem.js';
import { loadPolicies } from '../config/load-policies.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io } from './io.js';

/** `weir check-config`: every error on standard error, a summary on standard output. */
export async function runCheckConfig(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('check-config', args, {});
  if (typeof parsed === 'string' || parsed.positionals.length === 0) {
    io.err(
      typeof parsed === 'string'
        ? parsed
        : 'weir check-config: name at least one policy file or directory; see weir check-config --help\n',
    );
    return EXIT.USAGE;
  }
  const { policySet, errors, warnings, files } = loadPolicies(parsed.positionals);
  for (const warning of warnings) io.err(`warning: ${formatProblem(warning)}\n`);
  for (const error of errors) io.err(`${formatProblem(error)}\n`);
  if (errors.length > 0) {
    io.err(`${errors.length} ${errors.length === 1 ? 'error' : 'errors'}\n`);
    return EXIT.FAILED;
  }
  const domains = [...policySet.domains.values()].map(
    ({ domain, rules }) => `${domain} (${rules.length} ${rules.length === 1 ? 'rule' : 'rules'})`,
  );
  io.out(
    `ok: ${files.length} ${files.length === 1 ? 'file' : 'files'}, ${domains.join(', ') || 'no domains'}\n`,
  );
  return EXIT.OK;
}
