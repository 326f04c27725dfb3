import type { PolicySet } from '../config/policy.js';
import type { Clock } from '../limiter/clock.js';
import { createLogger, type Logger } from '../telemetry/logger.js';
import { domainsOf } from './endpoints.js';
import type { Settings } from './settings-table.js';

/** The log as the settings say. `worker` stands in every line of a worker process. */
export function createServerLogger(settings: Settings, terminal: boolean, worker?: number): Logger {
  return createLogger({
    level: settings.logLevel,
    format: settings.logFormat === 'auto' ? (terminal ? 'text' : 'json') : settings.logFormat,
    colour: terminal,
    worker,
  });
}

/** The line that ends a start: `process` is what this process is, `source` is where `policies` come from, which are in force. */
export function logServing(
  log: Logger,
  process: Readonly<Record<string, string | number>>,
  source: string,
  policies: PolicySet | undefined,
  clock: Clock,
): void {
  const domains = domainsOf(policies, clock).map(({ domain, phase }) => `${domain} (${phase})`);
  log.info({ ...process, source, policy: policies?.version ?? 'none', domains }, 'weir serves');
}
