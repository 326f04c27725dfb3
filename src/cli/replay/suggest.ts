import { printableLine } from '../../printable.js';
import { absentValues } from '../../replay/absent-values.js';
import { callsInLog } from '../../replay/calls-in-log.js';
import { namedEntry } from '../../replay/entry-sources.js';
import { LogError, type LoggedBatch, type ReadTotals } from '../../replay/log/logged-request.js';
import { unsortedWarning } from '../../replay/report/log-sentences.js';
import { runSuggest } from '../../replay/suggest/run-suggest.js';
import { DEFAULT_SUGGEST_OPTIONS } from '../../replay/suggest/suggest.js';
import { readArguments } from '../arguments.js';
import { EXIT, type Io, SIGNAL_CODES } from '../io.js';
import { CommandErrors } from './command-errors.js';
import { openReplayLog } from './replay-log.js';
import { readLogNumbers, readMargins, SUGGEST_OPTIONS } from './replay-options.js';
import { ReplayProgress } from './replay-progress.js';

/** Runs `weir suggest`: prints a policy for the demand of an access log. */
export async function runSuggestCommand(
  args: readonly string[],
  io: Io,
  raw: Pick<Io, 'err'>,
): Promise<number> {
  const errors = new CommandErrors('suggest', io);
  const parsed = readArguments('suggest', args, SUGGEST_OPTIONS);
  if (typeof parsed === 'string') return errors.usageText(parsed);
  const { values, positionals: paths } = parsed;
  const { by, domain, daily = false } = values;
  const log = readLogNumbers(values);
  const margins = readMargins(values);
  if (paths.length === 0) return errors.usage('name at least one access log, or - for standard input');
  if (by === undefined)
    return errors.usage('name the descriptor entry of callers with --by, such as --by tenant');
  if (typeof log === 'string') return errors.usage(log);
  if (typeof margins === 'string') return errors.usage(margins);
  const interrupt = new AbortController();
  let signalled: keyof typeof SIGNAL_CODES | undefined;
  io.onSignal((signal) => {
    signalled = signal;
    interrupt.abort();
  });
  const opened = await openReplayLog(
    { ...log, paths, envoy: values.envoy ?? [], logFormat: values['log-format'] },
    (line) => io.err(`${line}\n`),
    interrupt.signal,
  );
  if (!('log' in opened))
    return signalled === undefined ? errors.failed(opened) : interrupted(signalled, errors);
  const calls = callsInLog(opened.log, opened.columns, opened.envoy);
  if (typeof calls === 'string') {
    await opened.log.close();
    return errors.failed([calls]);
  }
  const progress = new ReplayProgress('suggest', { err: raw.err, isTerminal: io.errorTerminal === true });
  const { log: openedLog, columns } = opened;
  // This also ends the wait for standard input.
  interrupt.signal.addEventListener('abort', () => void openedLog.close());
  const read: { totals?: ReadTotals } = {};
  async function* batches(): AsyncGenerator<LoggedBatch> {
    for await (const batch of openedLog.requests(columns)) {
      read.totals = batch.totals;
      progress.show(batch.totals);
      if (interrupt.signal.aborted) return;
      yield batch;
    }
  }
  try {
    const { sources } = opened.envoy ?? {};
    const options = {
      ...DEFAULT_SUGGEST_OPTIONS,
      ...margins,
      daily,
      by: namedEntry(by, sources).key,
      ...(sources !== undefined && { sources }),
    };
    const policy = await runSuggest({ batches: batches(), callsOf: calls.callsOf, domain, options });
    progress.end();
    if (signalled !== undefined) return interrupted(signalled, errors);
    const { totals } = read;
    if (totals !== undefined)
      for (const warning of [
        ...unsortedWarning(totals),
        ...absentValues({ ...opened, needs: opened.envoy?.needs ?? [], totals }),
      ])
        io.err(`weir suggest: warning: ${printableLine(warning)}\n`);
    if (typeof policy !== 'string') return errors.failed([policy.refused]);
    io.out(policy);
    return EXIT.OK;
  } catch (error) {
    progress.end();
    if (signalled !== undefined) return interrupted(signalled, errors);
    if (!(error instanceof LogError)) throw error;
    return errors.failed([error.message]);
  }
}

/** A part of the log would give limits that are too low, so an interrupted command writes no policy. */
function interrupted(signal: keyof typeof SIGNAL_CODES, errors: CommandErrors): number {
  errors.failed(['interrupted, and no policy was written']);
  return SIGNAL_CODES[signal];
}
