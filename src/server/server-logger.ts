import { showsColours } from '../colours.js';
import { reportBrokenInvariants } from '../invariant.js';
import type { Clock } from '../limiter/clock.js';
import type { PolicySet } from '../policy/policy-set.js';
import { throttledLog } from '../runtime/throttled-log.js';
import { LogOutput, standardOutput } from '../telemetry/log-output.js';
import { createLogger, type Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { domainPhases } from './ports/endpoints.js';
import type { Settings } from './settings/settings-table.js';

/** The log of a process, and where it goes. */
export interface ServerLog {
  readonly log: Logger;
  readonly output: LogOutput;
}

/**
 * Opens the log that the settings describe, which takes the warnings of Node.js, too. In a worker process, every line
 * has the field `worker`.
 */
export function createServerLogger(settings: Settings, terminal: boolean, worker?: number): ServerLog {
  const output = new LogOutput({ write: standardOutput() });
  const format = settings.logFormat === 'auto' ? (terminal ? 'text' : 'json') : settings.logFormat;
  const colour = showsColours(terminal, process.env);
  const log = createLogger({ level: settings.logLevel, format, colour, worker }, output);
  // Node.js prints them between the lines. Callers cause some, as @grpc/grpc-js makes timers of what they send.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn({ name }, `Node.js warns: ${message}`));
  return { log, output };
}

/** Tells of broken invariants in the log, now and then, and counts all; returns what ends that. */
export function logBrokenInvariants(log: Logger, metrics: Metrics): () => void {
  const shouldLog = throttledLog();
  return reportBrokenInvariants((err) => {
    metrics.brokenInvariant();
    if (!shouldLog()) return;
    log.error({ err }, 'a state that must hold does not: a mistake in weir, please report this line');
  });
}

/**
 * The line that ends a start: `process` is what this process is, `source` is where `policies` come from, which are in
 * force.
 */
export function logServing(
  log: Logger,
  process: Readonly<Record<string, string | number>>,
  source: string,
  policies: PolicySet | undefined,
  clock: Clock,
): void {
  const domains = domainPhases(policies, clock).map(({ domain, phase }) => `${domain} (${phase})`);
  log.info({ ...process, source, policy: policies?.version ?? 'none', domains }, 'weir serves');
}
