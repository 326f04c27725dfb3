import { type Logger, type LoggerOptions as PinoOptions, pino } from 'pino';
import { printableLine, printableLines } from '../printable.js';
import { quantity } from '../quantity.js';
import { LogOutput, standardOutput } from './log-output.js';

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
 * A logger on `output`, standard output by default, which is for one logger in a process. A line is written before the
 * call returns, if somebody reads; nobody is waited for but at the end of the process, and then not for long. Below the
 * level asked for, a call costs nothing.
 */
export function createLogger(
  options: LoggerOptions,
  output = new LogOutput({ write: standardOutput() }),
): Logger {
  const logger = pino(...sinkOf(options, output));
  output.onGap = (dropped) => {
    logger.warn(
      { dropped },
      `${quantity(dropped, 'log line was', 'log lines were')} dropped because nobody read them`,
    );
  };
  process.once('exit', () => output.end());
  return logger;
}

function sinkOf(options: LoggerOptions, output: LogOutput): [PinoOptions, { write(line: string): void }] {
  const level = LOG_LEVELS[options.level];
  const base = options.worker === undefined ? null : { worker: options.worker };
  if (options.format === 'text') {
    // Read where it is asked for: a start is mostly reading code.
    const { prettyFactory } = require('pino-pretty') as typeof import('pino-pretty');
    const pretty = prettyFactory({
      colorize: options.colour,
      translateTime: 'SYS:HH:MM:ss.l',
      ignore: 'pid,hostname',
      singleLine: true,
    });
    // Lines that are dropped are not made pretty before.
    const write = (line: string): void => output.write(output.isFull ? line : pretty(readPrintable(line)));
    return [{ level, base }, { write }];
  }
  return [
    {
      level,
      base,
      // Fields and levels as the reference (logrus) names them, so that what reads its log reads this one.
      messageKey: '@message',
      timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label === 'warn' ? 'warning' : label }) },
    },
    { write: (line) => output.write(printableLines(line)) },
  ];
}

/** Reads a line whose texts may come from callers and servers: on a terminal they begin no line and steer nothing. */
function readPrintable(line: string): object {
  return JSON.parse(line, (key, value: unknown) => {
    if (typeof value !== 'string') return value;
    return key === 'stack' ? printableLines(value) : printableLine(value);
  }) as object;
}
