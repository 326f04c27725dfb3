import { summaryOf } from '../config/diff/change.js';
import { diffPolicies } from '../config/diff/diff-policies.js';
import { renderDiff } from '../config/diff/render-diff.js';
import { type LoadOptions, loadPolicies } from '../config/files/load-policies.js';
import { formatProblem } from '../config/yaml/config-problem.js';
import type { PolicySet } from '../policy/policy-set.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io } from './io.js';
import { LOAD_OPTIONS, readLoadOptions } from './load-options.js';

const OPTIONS = { json: { type: 'boolean' }, ...LOAD_OPTIONS } as const;

/** Runs `weir diff`. Resolves with exit code 0 if no change tightens, and 3 if one does. */
export async function runDiff(args: readonly string[], io: Io): Promise<number> {
  const parsed = readArguments('diff', args, OPTIONS);
  if (typeof parsed === 'string') {
    io.err(parsed);
    return EXIT.USAGE;
  }
  const [before, after, ...more] = parsed.positionals;
  if (before === undefined || after === undefined || more.length > 0) {
    io.err(
      'weir diff: specify two policy files or directories, the old one and the new one; see weir diff --help\n',
    );
    return EXIT.USAGE;
  }
  const options = readLoadOptions('diff', parsed.values, io);
  if (typeof options === 'string') {
    io.err(options);
    return EXIT.USAGE;
  }
  const sets = [before, after].map((path) => load(path, options, io));
  const [old, now] = sets;
  if (old === undefined || now === undefined) return EXIT.FAILED;
  const changes = diffPolicies(old, now, Date.now() * 1000);
  const tightens = changes.some((change) => change.tightens);
  const asJson = parsed.values.json === true;
  const report = { tightens, summary: summaryOf(changes), changes };
  io.out(asJson ? `${JSON.stringify(report, null, 2)}\n` : renderDiff(changes));
  return tightens ? EXIT.TIGHTENS : EXIT.OK;
}

/** Loads a policy. If it is invalid, prints every error to standard error and returns undefined. */
function load(path: string, options: LoadOptions, io: Io): PolicySet | undefined {
  const { policySet, errors } = loadPolicies([path], options);
  for (const error of errors) io.err(`${formatProblem(error)}\n`);
  return errors.length > 0 ? undefined : policySet;
}
