import { type Logger, type LoggerOptions as PinoOptions, pino } from 'pino';
import { printableLine, printableLines } from '../runtime/printable.js';
import { plural } from '../runtime/texts.js';
import { LogOutput, standardOutput } from './log-output.js';

export type { Logger } from 'pino';

/** Levels of LOG_LEVEL with the names of the reference (logrus), and pino's name of each. */
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
  /** `json`: one JSON object per line. `text`: for people. */
  readonly format: 'json' | 'text';
  /** Whether text may be colored, which only a terminal supports. */
  readonly colour: boolean;
  /** Number of the worker, which every line contains; undefined in a single process. */
  readonly worker?: number | undefined;
}

/** The outputs of all loggers. Tests create many, and Node.js warns of many listeners. */
const outputs = new Set<LogOutput>();

function endOutputs(): void {
  for (const output of outputs) output.end();
  outputs.clear();
}

/**
 * Creates a logger on `output`, standard output by default, for one logger per process. If the reader reads, a line is
 * written before the call returns. Calls never block, except briefly at exit. A call below the level returns
 * immediately.
 */
export function createLogger(
  options: LoggerOptions,
  output = new LogOutput({ write: standardOutput() }),
): Logger {
  const logger = pino(...sinkOf(options, output));
  output.onGap = (dropped) => {
    logger.warn(
      { dropped },
      `${plural(dropped, 'log line was', 'log lines were')} dropped because the log output was too slow or failed`,
    );
  };
  if (outputs.size === 0) process.once('exit', endOutputs);
  outputs.add(output);
  return logger;
}

function sinkOf(options: LoggerOptions, output: LogOutput): [PinoOptions, { write(line: string): void }] {
  const level = LOG_LEVELS[options.level];
  const base = options.worker === undefined ? null : { worker: options.worker };
  if (options.format === 'text') {
    // Loaded only if needed, because loading code takes most of a start.
    const { prettyFactory } = require('pino-pretty') as typeof import('pino-pretty');
    const pretty = prettyFactory({
      colorize: options.colour,
      translateTime: 'SYS:HH:MM:ss.l',
      ignore: 'pid,hostname',
      singleLine: true,
    });
    // Formatting a line that will be dropped is a waste of time.
    const write = (line: string): void => output.write(output.isFull ? line : pretty(readPrintable(line)));
    return [{ level, base }, { write }];
  }
  return [
    {
      level,
      base,
      // Fields and levels have the names of the reference (logrus), so that its log parsers work.
      messageKey: '@message',
      timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label === 'warn' ? 'warning' : label }) },
    },
    { write: (line) => output.write(printableLines(line)) },
  ];
}

/**
 * Parses a line and escapes control characters in its strings. Otherwise, callers and servers could send control
 * characters that forge lines or affect the terminal.
 */
function readPrintable(line: string): object {
  return JSON.parse(line, (key, value: unknown) => {
    if (typeof value !== 'string') return value;
    return key === 'stack' ? printableLines(value) : printableLine(value);
  }) as object;
}
