import { type LoadOptions, loadPolicies } from '../../config/files/load-policies.js';
import { formatProblem } from '../../config/yaml/config-problem.js';
import { printableLine } from '../../printable.js';
import { gateResultText, gateText, worstVerdict } from '../../replay/report/gates.js';
import { hideValues, valueHider } from '../../replay/report/hide-values.js';
import { shownPath } from '../../replay/report/names.js';
import type { ReplayReport } from '../../replay/report/report.js';
import { targetProblem, writeReport } from '../../replay/report/report-files.js';
import { type NamedPolicy, runReplay } from '../../replay/run-replay.js';
import { defaultOf } from '../../server/settings/settings-table.js';
import { isSameFile } from '../../written-files.js';
import { EXIT, type Io, SIGNAL_CODES } from '../io.js';
import type { CommandErrors } from './command-errors.js';
import { openReplayLog } from './replay-log.js';
import type { ReplayNumbers, ReportValues } from './replay-options.js';
import { ReplayProgress } from './replay-progress.js';
import { textReport } from './text-report.js';

/** A policy and the files that it was loaded from. */
export interface LoadedPolicy extends NamedPolicy {
  readonly files: readonly string[];
}

/** Loads a policy. If it is invalid, prints every error to standard error and returns undefined. */
export function loadPolicy(
  name: string,
  options: LoadOptions,
  io: Pick<Io, 'err'>,
): LoadedPolicy | undefined {
  const { policySet, errors, files } = loadPolicies([name], options);
  for (const error of errors) io.err(`${formatProblem(error)}\n`);
  return errors.length > 0 ? undefined : { name, policySet, files };
}

/** A file for the report, and what to write to it. */
export interface ReportFile {
  readonly path: string;
  readonly contentOf: (report: ReplayReport) => string;
}

/** Input of {@link replayPolicies}. */
export interface PoliciesReplay {
  readonly command: string;
  /** Access logs. */
  readonly paths: readonly string[];
  readonly after: LoadedPolicy;
  readonly before: LoadedPolicy | undefined;
  readonly values: ReportValues;
  readonly numbers: ReplayNumbers;
  /** Prints the report to standard output. */
  readonly print: (report: ReplayReport) => void;
  readonly files: readonly ReportFile[];
}

/** Replays a log, prints and writes the report, and prints the results of gates. Resolves with the exit code. */
export async function replayPolicies(
  { command, paths, after, before, values, numbers, print, files }: PoliciesReplay,
  errors: CommandErrors,
  io: Io,
  raw: Pick<Io, 'err'>,
): Promise<number> {
  const { envoy = [], 'log-format': logFormat, by, anonymise = false } = values;
  const policies = before === undefined ? [after] : [after, before];
  const inputs = [
    ...paths,
    ...envoy,
    logFormat ?? '',
    ...policies.flatMap((each) => [each.name, ...each.files]),
  ];
  const unwritable = files.flatMap(({ path }) => targetProblem(path, inputs) ?? []);
  if (unwritable.length > 0) return errors.failed(unwritable);
  if (before !== undefined && after.isPreview !== true && isSameFile(before.name, after.name))
    io.err(
      `weir ${command}: warning: both policies are ${shownPath(after.name)}, so the change has no effect\n`,
    );
  const interrupt = new AbortController();
  let signalled: keyof typeof SIGNAL_CODES | undefined;
  io.onSignal((signal) => {
    signalled = signal;
    interrupt.abort();
  });
  const warn = (line: string): void => io.err(`${line}\n`);
  const opened = await openReplayLog({ ...numbers, paths, envoy, logFormat }, warn, interrupt.signal);
  if (!('log' in opened)) {
    const code = errors.failed(opened);
    return signalled === undefined ? code : SIGNAL_CODES[signalled];
  }
  const progress = new ReplayProgress(command, { err: raw.err, isTerminal: io.errorTerminal === true });
  const report = await runReplay({
    ...opened,
    ...numbers,
    paths,
    after,
    before,
    by,
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
  const hide = valueHider(new Set(domains.flatMap(({ secretKeys }) => [...secretKeys])), anonymise);
  const shown = hideValues(report, hide, anonymise);
  for (const warning of shown.warnings) io.err(`weir ${command}: warning: ${printableLine(warning)}\n`);
  print(shown);
  const broken = signalled === undefined ? shown.partial : undefined;
  // Half a report must not replace an older one.
  const problems =
    broken !== undefined
      ? [broken]
      : files.flatMap(({ path, contentOf }) => writeReport(path, contentOf(shown), inputs) ?? []);
  for (const gate of shown.gates)
    io.err(`weir ${command}: --${gate.name} ${gateText(gate)}: ${gate.verdict}: ${gateResultText(gate)}\n`);
  const worst = worstVerdict(shown.gates);
  if (problems.length > 0) {
    const code = errors.failed(problems);
    return broken !== undefined && worst === 'failed' ? EXIT.TIGHTENS : code;
  }
  if (signalled !== undefined) return SIGNAL_CODES[signalled];
  return { passed: EXIT.OK, failed: EXIT.TIGHTENS, undecided: EXIT.FAILED }[worst];
}

/** Returns the report as a table for standard output. */
export function tableReport(report: ReplayReport, { terminal }: Pick<Io, 'terminal'>): string {
  return textReport(report, terminal ? process.stdout.columns : undefined);
}
