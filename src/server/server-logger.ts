import { createLogger, type Logger } from '../telemetry/logger.js';
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
