import { summaryOf } from '../config/diff/change.js';
import { diffPolicies } from '../config/diff/diff-policies.js';
import { renderDiff } from '../config/diff/render-diff.js';
import { type LoadOptions, loadPolicies } from '../config/files/load-policies.js';
import { formatProblem } from '../config/yaml/config-problem.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io, usageError } from './io.js';
import { LOAD_OPTIONS, readLoadOptions } from './load-options.js';

const OPTIONS = { json: { type: 'boolean' }, ...LOAD_OPTIONS } as const;

/** Runs `weir diff`. Resolves with exit code 0 if no change tightens, and 3 if one does. */
export async function runDiff(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readArguments('diff', args, OPTIONS);
  const [before, after, ...more] = positionals;
  if (before === undefined || after === undefined || more.length > 0)
    throw usageError('diff', 'specify two policy files or directories, the old one and the new one');
  const options = readLoadOptions('diff', values, io);
  const old = loadPolicy(before, options, io);
  const now = loadPolicy(after, options, io);
  if (old === undefined || now === undefined) return EXIT.FAILED;
  const changes = diffPolicies(old, now, Date.now() * 1000);
  const tightens = changes.some((change) => change.tightens);
  io.out(
    values.json === true
      ? `${JSON.stringify({ tightens, summary: summaryOf(changes), changes }, null, 2)}\n`
      : renderDiff(changes),
  );
  return tightens ? EXIT.TIGHTENS : EXIT.OK;
}

/** Loads a policy. If it is invalid, prints every error to standard error and returns undefined. */
function loadPolicy(name: string, options: LoadOptions, io: Io): PolicySet | undefined {
  const { policySet, errors } = loadPolicies([name], options);
  for (const error of errors) io.err(`${formatProblem(error)}\n`);
  return errors.length > 0 ? undefined : policySet;
}
