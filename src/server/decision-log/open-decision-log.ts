import type { Closers } from '../../runtime/closers.js';
import { throttledLog } from '../../runtime/throttled-log.js';
import type { DecisionLog } from '../../service/record/decision-record.js';
import { LogOutput } from '../../telemetry/log-output.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';
import { DecisionFile } from './decision-file.js';
import { decisionLine } from './decision-line.js';

/** A {@link DecisionLog} with the number of lines dropped since the start. */
export interface OpenDecisionLog {
  readonly log: DecisionLog;
  dropped(): number;
}

/** Dependencies of {@link openDecisionLog}. */
export interface DecisionLogParts {
  readonly settings: Pick<Settings, 'decisionLogSample' | 'decisionLogFile'>;
  readonly log: Pick<Logger, 'warn' | 'info'>;
  /** Output of the process log, which the decision log shares if no file is set. */
  readonly output: LogOutput;
  /** Number of the worker; undefined in a single process. */
  readonly worker: number | undefined;
  /** Returns a number from 0 to just below 1. Default: Math.random. */
  readonly random?: () => number;
}

/** Opens the sampled decision log, or returns undefined if the settings disable it. Throws {@link StartError}. */
export function openDecisionLog(parts: DecisionLogParts, closers: Closers): OpenDecisionLog | undefined {
  const { settings, worker, random = Math.random } = parts;
  const rates = settings.decisionLogSample;
  if (rates === undefined || (rates.denied === 0 && rates.ok === 0)) return undefined;
  const path = settings.decisionLogFile;
  const output = path === '' ? parts.output : openFile(path, parts.log, closers);
  let dropped = 0;
  const log: DecisionLog = {
    sample(denied) {
      const rate = denied ? rates.denied : rates.ok;
      return rate > 0 && random() < rate ? rate : 0;
    },
    write(record) {
      // Formatting a line that would be dropped is a waste of time.
      if (output.isFull) dropped++;
      else output.write(decisionLine(record, worker));
    },
  };
  // The process log counts its own dropped lines, which include those of the decision log on standard output.
  return { log, dropped: () => dropped + (output === parts.output ? 0 : output.dropped) };
}

function openFile(path: string, log: DecisionLogParts['log'], closers: Closers): LogOutput {
  let file: DecisionFile;
  try {
    file = new DecisionFile(path);
  } catch (error) {
    throw new StartError([`DECISION_LOG_FILE: ${(error as Error).message}`]);
  }
  const output = new LogOutput({ write: (bytes) => file.write(bytes) });
  output.onFailure = failureLogger(path, log);
  closers.add(async () => {
    output.end();
    file.close();
  });
  return output;
}

/**
 * Returns a listener that logs when lines begin to be lost, and when writing succeeds again. The log is throttled,
 * because writes to a nearly full disk may alternate between both.
 */
function failureLogger(path: string, log: DecisionLogParts['log']): LogOutput['onFailure'] {
  const shouldLog = throttledLog();
  let told = false;
  return (error) => {
    if (error === undefined && told) log.info({ path }, 'weir can write to the decision log again');
    told = error !== undefined && shouldLog();
    if (!told) return;
    const text =
      'weir cannot write to the decision log, so decision log lines are lost; check DECISION_LOG_FILE';
    log.warn({ path, reason: error?.message }, text);
  };
}
