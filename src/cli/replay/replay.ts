import { loadPolicies } from '../../config/files/load-policies.js';
import { formatProblem } from '../../config/yaml/config-problem.js';
import { printableLine } from '../../printable.js';
import { initMapping } from '../../replay/log/init-mapping.js';
import { LogError } from '../../replay/log/logged-request.js';
import { checkGates, gateProblem } from '../../replay/report/gates.js';
import { hideValues, valueHider } from '../../replay/report/hide-values.js';
import { htmlReport } from '../../replay/report/html/html-report.js';
import type { ReplayReport } from '../../replay/report/report.js';
import { jsonReport, writeReport } from '../../replay/report/report-files.js';
import { type NamedPolicy, runReplay } from '../../replay/run-replay.js';
import { defaultOf } from '../../server/settings/settings-table.js';
import { readArguments } from '../arguments.js';
import { EXIT, type Io, SIGNAL_CODES } from '../io.js';
import { readLoadOptions } from '../load-options.js';
import { CommandErrors } from './command-errors.js';
import { openReplayLog } from './replay-log.js';
import { REPLAY_OPTIONS, readReplayNumbers } from './replay-options.js';
import { ReplayProgress } from './replay-progress.js';
import { textReport } from './text-report.js';

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
  if (values.json !== undefined && values.json === values.html)
    return errors.usage('--json and --html name the same file; choose two names');
  if (values.policy === undefined) return errors.usage('name the new policy with --policy');
  const numbers = readReplayNumbers(values);
  if (typeof numbers === 'string') return errors.usage(numbers);
  const unknownGroup = gateProblem(numbers.gates, values.by);
  if (unknownGroup !== undefined) return errors.usage(unknownGroup);
  const loadOptions = readLoadOptions('replay', values, io);
  if (typeof loadOptions === 'string') return errors.usageText(loadOptions);
  const policies: NamedPolicy[] = [];
  const inputs = [...paths, ...(values.envoy ?? []), values['log-format'] ?? ''];
  for (const name of [values.policy, ...(values.against === undefined ? [] : [values.against])]) {
    const { policySet, errors: problems, files } = loadPolicies([name], loadOptions);
    for (const problem of problems) io.err(`${formatProblem(problem)}\n`);
    if (problems.length > 0) return EXIT.FAILED;
    policies.push({ name, policySet });
    inputs.push(name, ...files);
  }
  const [after, before] = policies as [NamedPolicy, NamedPolicy?];
  const interrupt = new AbortController();
  let signalled: keyof typeof SIGNAL_CODES | undefined;
  io.onSignal((signal) => {
    signalled = signal;
    interrupt.abort();
  });
  const opened = await openReplayLog(
    { ...numbers, paths, envoy: values.envoy ?? [], logFormat: values['log-format'] },
    (line) => io.err(`${line}\n`),
  );
  if (!('log' in opened)) return errors.failed(opened);
  const progress = new ReplayProgress('replay', { err: raw.err, isTerminal: io.errorTerminal === true });
  const report = await runReplay({
    ...opened,
    ...numbers,
    paths,
    after,
    before,
    by: values.by,
    namedGroups: new Set(numbers.gates.flatMap(({ group }) => group?.value ?? [])),
    holdNames: {
      metadataKey: defaultOf('holdMetadataKey'),
      entry: values['hold-entry'] ?? defaultOf('holdEntry'),
    },
    onProgress: (totals) => progress.show(totals),
    interrupt: interrupt.signal,
  });
  progress.end();
  if (typeof report === 'string') {
    const code = errors.failed([report]);
    return signalled === undefined ? code : SIGNAL_CODES[signalled];
  }
  const domains = policies.flatMap(({ policySet }) => [...policySet.domains.values()]);
  const secretKeys = new Set(domains.flatMap((domain) => [...domain.secretKeys]));
  const hide = valueHider(secretKeys, values.anonymise === true);
  const shown = hideValues(report, hide, values.anonymise === true);
  for (const warning of shown.warnings) io.err(`weir replay: warning: ${printableLine(warning)}\n`);
  const problems = writeReports(shown, values, inputs, io);
  const checked = checkGates(numbers.gates, shown, hide);
  for (const line of checked.lines) io.err(`weir replay: ${line}\n`);
  if (problems.length > 0) return errors.failed(problems);
  if (signalled !== undefined) return SIGNAL_CODES[signalled];
  return checked.verdict === 'failed'
    ? EXIT.TIGHTENS
    : checked.verdict === 'undecided'
      ? EXIT.FAILED
      : EXIT.OK;
}

/** Writes the report to the files of `--json` and `--html`, and to standard output. Returns error messages. */
function writeReports(
  report: ReplayReport,
  { json, html }: { readonly json?: string | undefined; readonly html?: string | undefined },
  inputs: readonly string[],
  io: Io,
): readonly string[] {
  const reports = [
    { path: json, content: jsonReport },
    { path: html, content: htmlReport },
  ];
  const printed = reports.find(({ path }) => path === STANDARD_OUTPUT)?.content ?? tableReport(io);
  io.out(printed(report));
  return reports.flatMap(({ path, content }) =>
    path === undefined || path === STANDARD_OUTPUT ? [] : (writeReport(path, content(report), inputs) ?? []),
  );
}

function tableReport({ terminal }: Io): (report: ReplayReport) => string {
  return (report) => textReport(report, terminal ? process.stdout.columns : undefined);
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
