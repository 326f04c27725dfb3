import { summaryOf } from '../config/diff/change.js';
import { diffPolicies } from '../config/diff/diff-policies.js';
import { renderDiff } from '../config/diff/render-diff.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io, usageError } from './io.js';
import { LOAD_OPTIONS, loadPolicy, readLoadOptions } from './load-options.js';

const OPTIONS = { json: { type: 'boolean' }, ...LOAD_OPTIONS } as const;

/** Runs `weir diff`. Resolves with exit code 0 if no change tightens, and 3 if one does. */
export async function runDiff(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readArguments('diff', args, OPTIONS);
  const [before, after, ...more] = positionals;
  if (before === undefined || after === undefined || more.length > 0)
    throw usageError('diff', 'specify two policy files or directories, the old one and the new one');
  const options = readLoadOptions('diff', values);
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
