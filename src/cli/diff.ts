import { summaryOf } from '../config/diff/change.js';
import { diffPolicies } from '../config/diff/diff-policies.js';
import { renderDiff } from '../config/diff/render-diff.js';
import { htmlReport } from '../replay/report/html/html-report.js';
import type { ReplayReport } from '../replay/report/report.js';
import { readArguments } from './arguments.js';
import { EXIT, type Io } from './io.js';
import { LOAD_OPTIONS, readLoadOptions } from './load-options.js';
import { CommandErrors } from './replay/command-errors.js';
import { REPORT_OPTIONS, readReplayNumbers } from './replay/replay-options.js';
import { loadPolicy, replayPolicies, tableReport } from './replay/replay-policies.js';

const OPTIONS = {
  json: { type: 'boolean' },
  replay: { type: 'string', multiple: true },
  ...REPORT_OPTIONS,
  ...LOAD_OPTIONS,
} as const;

/**
 * Runs `weir diff`. Resolves with exit code 0 if no change tightens, and 3 if one does. With `--replay` and
 * `--max-newly-denied`, the requests of the log decide instead.
 */
export async function runDiff(args: readonly string[], io: Io, raw: Pick<Io, 'err'>): Promise<number> {
  const errors = new CommandErrors('diff', io);
  const parsed = readArguments('diff', args, OPTIONS);
  if (typeof parsed === 'string') return errors.usageText(parsed);
  const { values, positionals } = parsed;
  const [before, after, ...more] = positionals;
  if (before === undefined || after === undefined || more.length > 0) {
    const logs = values.replay === undefined ? '' : ', and each access log with its own --replay';
    return errors.usage(`specify two policy files or directories, the old one and the new one${logs}`);
  }
  const logOption = Object.keys(REPORT_OPTIONS).find((name) => Object.hasOwn(values, name));
  if (logOption !== undefined && values.replay === undefined)
    return errors.usage(`--${logOption} needs an access log; name it with --replay`);
  if (values.html === '-') return errors.usage('--html needs the name of a file');
  const numbers = readReplayNumbers(values);
  if (typeof numbers === 'string') return errors.usage(numbers);
  const options = readLoadOptions('diff', values, io);
  if (typeof options === 'string') return errors.usageText(options);
  const old = loadPolicy(before, options, io);
  const now = loadPolicy(after, options, io);
  if (old === undefined || now === undefined) return EXIT.FAILED;
  const asActive = values['as-active'] === true;
  const preview = asActive ? loadPolicy(after, { ...options, asActive }, io) : now;
  if (preview === undefined) return EXIT.FAILED;
  const changes = diffPolicies(old.policySet, now.policySet, Date.now() * 1000);
  const tightens = changes.some((change) => change.tightens);
  const asJson = values.json === true;
  const printJson = (replay?: ReplayReport): void =>
    io.out(`${JSON.stringify({ tightens, summary: summaryOf(changes), changes, replay }, null, 2)}\n`);
  if (!asJson) io.out(renderDiff(changes));
  if (values.replay === undefined) {
    if (asJson) printJson();
    return tightens ? EXIT.TIGHTENS : EXIT.OK;
  }
  const code = await replayPolicies(
    {
      command: 'diff',
      paths: values.replay,
      after: { ...preview, isPreview: asActive },
      before: old,
      values,
      numbers,
      print: (report) => (asJson ? printJson(report) : io.out(`\n${tableReport(report, io)}`)),
      files: values.html === undefined ? [] : [{ path: values.html, contentOf: htmlReport }],
    },
    errors,
    io,
    raw,
  );
  return code === EXIT.OK && tightens && numbers.gates.length === 0 ? EXIT.TIGHTENS : code;
}
