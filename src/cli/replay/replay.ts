import { initMapping } from '../../replay/log/init-mapping.js';
import { LogError } from '../../replay/log/logged-request.js';
import { htmlReport } from '../../replay/report/html/html-report.js';
import { jsonReport } from '../../replay/report/report-files.js';
import { isSameFile } from '../../written-files.js';
import { readArguments } from '../arguments.js';
import { EXIT, type Io } from '../io.js';
import { readLoadOptions } from '../load-options.js';
import { CommandErrors } from './command-errors.js';
import { REPLAY_OPTIONS, readReplayNumbers } from './replay-options.js';
import { loadPolicy, replayPolicies, tableReport } from './replay-policies.js';

/** `--json -` and `--html -` write to standard output instead of the table. */
const STANDARD_OUTPUT = '-';

/** Runs `weir replay`. Resolves with exit code 3 if a gate fails, and with 1 if the log does not decide it. */
export async function runReplayCommand(
  args: readonly string[],
  io: Io,
  raw: Pick<Io, 'err'>,
): Promise<number> {
  const errors = new CommandErrors('replay', io);
  const parsed = readArguments('replay', args, REPLAY_OPTIONS);
  if (typeof parsed === 'string') return errors.usageText(parsed);
  const { values, positionals: paths } = parsed;
  if (paths.length === 0) return errors.usage('name at least one access log, or - for standard input');
  if (values.init === true) return writeMapping(paths, io, errors);
  if (values.json !== undefined && values.html !== undefined && isSameFile(values.json, values.html))
    return errors.usage('--json and --html name the same file; choose two names');
  if (values.policy === undefined) return errors.usage('name the new policy with --policy');
  const numbers = readReplayNumbers(values);
  if (typeof numbers === 'string') return errors.usage(numbers);
  const loadOptions = readLoadOptions('replay', values, io);
  if (typeof loadOptions === 'string') return errors.usageText(loadOptions);
  const asActive = values['as-active'] === true;
  const after = loadPolicy(values.policy, { ...loadOptions, asActive }, io);
  if (after === undefined) return EXIT.FAILED;
  const before = values.against === undefined ? undefined : loadPolicy(values.against, loadOptions, io);
  if (before === undefined && values.against !== undefined) return EXIT.FAILED;
  const reports = [
    { path: values.json, contentOf: jsonReport },
    { path: values.html, contentOf: htmlReport },
  ];
  const printed = reports.find(({ path }) => path === STANDARD_OUTPUT)?.contentOf;
  return replayPolicies(
    {
      command: 'replay',
      paths,
      after: { ...after, isPreview: asActive },
      before,
      values,
      numbers,
      print: (report) => io.out(printed === undefined ? tableReport(report, io) : printed(report)),
      files: reports.flatMap(({ path, contentOf }) =>
        path === undefined || path === STANDARD_OUTPUT ? [] : { path, contentOf },
      ),
    },
    errors,
    io,
    raw,
  );
}

/** Prints the mapping that `--init` makes from the first lines of a log. */
async function writeMapping(
  paths: readonly string[],
  io: Pick<Io, 'out'>,
  errors: CommandErrors,
): Promise<number> {
  try {
    io.out(await initMapping(paths));
    return EXIT.OK;
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    return errors.failed([error.message]);
  }
}
