import { reportBrokenInvariants } from '../runtime/invariant.js';
import { showsColours } from '../runtime/texts.js';
import { throttledLog } from '../runtime/timers.js';
import { LogOutput, standardOutput } from '../telemetry/log-output.js';
import { createLogger, type Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Settings } from './settings/settings-table.js';

/**
 * Creates the log that the settings describe, which also receives the warnings of Node.js. In a worker, every line has
 * the field `worker`.
 */
export function createServerLogger(
  settings: Settings,
  terminal: boolean,
  worker?: number,
): { readonly log: Logger; readonly output: LogOutput } {
  const output = new LogOutput({ write: standardOutput() });
  const format = settings.logFormat === 'auto' ? (terminal ? 'text' : 'json') : settings.logFormat;
  const colour = showsColours(terminal, process.env);
  const log = createLogger({ level: settings.logLevel, format, colour, worker }, output);
  // Node.js would print warnings between the lines of the log. Callers can cause some, because @grpc/grpc-js sets
  // timers from values that they send.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn({ name }, `warning from Node.js: ${message}`));
  return { log, output };
}

/** Logs broken invariants, throttled, and counts all of them. Returns a function that stops it. */
export function logBrokenInvariants(log: Logger, metrics: Metrics): () => void {
  const shouldLog = throttledLog();
  return reportBrokenInvariants((err) => {
    metrics.brokenInvariant();
    if (!shouldLog()) return;
    log.error(
      { err },
      'weir is in an impossible internal state because of a bug in weir; please report this log line',
    );
  });
}
