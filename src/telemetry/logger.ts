import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

/** Levels of LOG_LEVEL, as the reference (logrus) names them, and pino's name for each. */
export const LOG_LEVELS = {
  panic: 'fatal',
  fatal: 'fatal',
  error: 'error',
  warn: 'warn',
  warning: 'warn',
  info: 'info',
  debug: 'debug',
  trace: 'trace',
} as const;
export type LogLevel = keyof typeof LOG_LEVELS;

export interface LoggerOptions {
  readonly level: LogLevel;
  /** One JSON object a line, or text for people. */
  readonly format: 'json' | 'text';
  /** Whether text may be coloured: only on a terminal. */
  readonly colour: boolean;
  /** Stands in every line when given: number of the worker process. */
  readonly worker?: number | undefined;
}

/**
 * A logger on standard output. Writes are synchronous, so that the last lines before an exit are never lost; below the level asked
 * for, a call costs nothing.
 */
export function createLogger(options: LoggerOptions): Logger {
  const level = LOG_LEVELS[options.level];
  const base = options.worker === undefined ? null : { worker: options.worker };
  if (options.format === 'text') {
    return pino(
      { level, base },
      pretty({
        colorize: options.colour,
        sync: true,
        translateTime: 'SYS:HH:MM:ss.l',
        ignore: 'pid,hostname',
        singleLine: true,
      }),
    );
  }
  const destination = pino.destination({ fd: 1, sync: true });
  // A full disk behind the log loses lines; it must not end the service.
  destination.on('error', () => {});
  return pino(
    {
      level,
      base,
      // Fields and levels as the reference (logrus) names them, so that what reads its log reads this one.
      messageKey: '@message',
      timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label === 'warn' ? 'warning' : label }) },
    },
    destination,
  );
}
