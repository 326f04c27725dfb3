import { closeSync, constants, fstatSync, openSync, type Stats, statSync, writeSync } from 'node:fs';
import { exactTimeText } from '../../limiter/clock.js';
import type { Entry } from '../../limiter/entry.js';
import type { Closers } from '../../runtime/closers.js';
import { printableJson } from '../../runtime/printable.js';
import { MAX_CHARACTERS, shown } from '../../runtime/texts.js';
import { throttledLog } from '../../runtime/timers.js';
import { workingDirectoryHint } from '../../runtime/working-directory.js';
import type { DecisionLog, DecisionRecord, DescriptorRecord } from '../../service/record/decision-record.js';
import { LogOutput } from '../../telemetry/log-output.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';

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
  /** A number from 0 to below 1. Default: Math.random. */
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

/** Interval between two checks whether the file at the path was replaced, in milliseconds. */
const CHECK_INTERVAL_MS = 1000;
/** Only the owner and the group, such as a log shipper, may read the requests of callers. */
const FILE_MODE = 0o640;

/**
 * The file to which the decision log is appended. weir creates the file if it is missing. Once a log rotator renames or
 * removes it, weir creates a new file at its path within a second. Writes never wait for a reader.
 */
class DecisionFile {
  readonly #path: string;
  readonly #nowMs: () => number;
  #fd: number;
  #stat: Stats;
  #nextCheckMs: number;

  /** Opens the file. Throws an Error with a sentence if the file cannot be written. */
  constructor(path: string, nowMs: () => number = () => performance.now()) {
    this.#path = path;
    this.#nowMs = nowMs;
    try {
      this.#fd = openToAppend(path);
    } catch (error) {
      throw new Error(`cannot write ${path}: ${reasonOf(error as NodeJS.ErrnoException, path)}`);
    }
    this.#stat = fstatSync(this.#fd);
    this.#nextCheckMs = nowMs() + CHECK_INTERVAL_MS;
  }

  /** Returns the number of bytes written. Throws what fs.writeSync throws. */
  write(bytes: Uint8Array): number {
    if (this.#fd >= 0 && this.#nowMs() >= this.#nextCheckMs) this.#reopenIfRotated();
    return writeSync(this.#fd, bytes);
  }

  /** Closes the file. Later writes fail, so their bytes are lost. */
  close(): void {
    closeSync(this.#fd);
    // The system may soon use the descriptor for another file.
    this.#fd = -1;
  }

  /** Opens the new file after a rotation. If that fails, writes continue to the old file. */
  #reopenIfRotated(): void {
    this.#nextCheckMs = this.#nowMs() + CHECK_INTERVAL_MS;
    if (!this.#stat.isFile()) return;
    try {
      const existing = statSync(this.#path, { throwIfNoEntry: false });
      if (existing?.ino === this.#stat.ino && existing.dev === this.#stat.dev) return;
      const fd = openToAppend(this.#path);
      closeSync(this.#fd);
      this.#fd = fd;
      this.#stat = fstatSync(fd);
    } catch {
      // The folder is missing, or the disk is full. Writes go to the old file until the next check.
    }
  }
}

function openToAppend(path: string): number {
  const { O_RDWR, O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK, O_NOCTTY } = constants;
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isSocket() || existing?.isBlockDevice())
    throw new Error(
      'the path is a socket or a block device; specify a file, a named pipe, or a device such as /dev/stdout',
    );
  // A pipe that is opened for reading and writing needs no reader yet, and stays open when its reader exits.
  const access = existing?.isFIFO() ? O_RDWR : O_WRONLY | O_APPEND | O_CREAT;
  return openSync(path, access | O_NONBLOCK | O_NOCTTY, FILE_MODE);
}

function reasonOf({ code, message }: NodeJS.ErrnoException, path: string): string {
  switch (code) {
    case 'ENOENT':
      return (
        `the parent directory does not exist${workingDirectoryHint(path)}; create the directory, or ` +
        'correct the path'
      );
    case 'EACCES':
      return (
        'the user that runs weir has no permission to write to the file; check the owner and mode of the ' +
        'file and its parent directories'
      );
    case 'EROFS':
      return 'the file system is read-only; mount a writable volume';
    case 'EISDIR':
      return 'the path is a directory; specify a file';
    default:
      return message;
  }
}

/**
 * Version of the format, in the member `decision` of each line. It increases with each change that readers must know.
 */
const DECISION_FORMAT = 1;

/** Maximum number of characters of a line. Further descriptors are omitted and counted. */
export const MAX_LINE_CHARACTERS = 32 * 1024;

/** Names of envoy.type.v3.RateLimitUnit in protobuf JSON. */
const UNITS = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'];

/**
 * Returns a line of the decision log, with its line end: one JSON object per request. Members without a value are
 * omitted. `worker` is the number of the worker. Control characters in strings from callers are escaped, so that they
 * cannot affect a terminal.
 */
export function decisionLine(record: DecisionRecord, worker?: number): string {
  const { traceId, request, domain, code, reason, sample, wallMicros, micros } = record;
  let cut = record.moreDescriptors > 0 || domain.length > MAX_CHARACTERS;
  const head = printableJson({
    decision: DECISION_FORMAT,
    time: exactTimeText(wallMicros),
    ...(traceId !== '' && { trace_id: traceId }),
    ...(request !== '' && { request: shown(request) }),
    ...(worker !== undefined && { worker }),
    domain: shown(domain),
    code,
    ...(reason !== undefined && { reason }),
    sample,
    micros: Math.max(0, Math.round(micros)),
  });
  const texts: string[] = [];
  let length = head.length;
  let more = record.moreDescriptors;
  for (const descriptor of record.descriptors) {
    const text = printableJson(descriptorMembers(descriptor));
    cut ||= isCut(descriptor);
    length += text.length + 1;
    if (more > record.moreDescriptors || length > MAX_LINE_CHARACTERS) more++;
    else texts.push(text);
  }
  cut ||= more > 0;
  const end = `${more > 0 ? `,"more_descriptors":${more}` : ''}${cut ? ',"cut":true' : ''}}\n`;
  return `${head.slice(0, -1)},"descriptors":[${texts.join(',')}]${end}`;
}

function descriptorMembers(descriptor: DescriptorRecord): Readonly<Record<string, unknown>> {
  const { sent, moreEntries, override, rule, limit, remaining, holds } = descriptor;
  const { overSoftLimits, className } = descriptor;
  return {
    entries: descriptor.entries.map(shownEntry),
    ...(sent !== undefined && { sent: sent.map(shownEntry) }),
    ...(moreEntries > 0 && { more_entries: moreEntries }),
    hits: descriptor.hits,
    ...(descriptor.refund && { refund: true }),
    ...(override !== undefined && {
      override: { requests_per_unit: override.requestsPerUnit, unit: UNITS[override.unit] ?? override.unit },
    }),
    ...(rule !== '' && { rule: shown(rule) }),
    ...(className !== '' && { class: shown(className) }),
    code: descriptor.code,
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(descriptor.wouldBeThrottled && { would_be_throttled: true }),
    ...(overSoftLimits.length > 0 && { over_soft_limits: overSoftLimits.map((rule) => shown(rule)) }),
    ...(holds.length > 0 && {
      holds: holds.map((hold) => ({ ...hold, ...(hold.rule !== undefined && { rule: shown(hold.rule) }) })),
    }),
  };
}

function shownEntry({ key, value }: Entry): Entry {
  return { key: shown(key), value: shown(value) };
}

function isCut({ entries, sent = [], moreEntries }: DescriptorRecord): boolean {
  const isLong = ({ key, value }: Entry): boolean =>
    key.length > MAX_CHARACTERS || value.length > MAX_CHARACTERS;
  return moreEntries > 0 || entries.some(isLong) || sent.some(isLong);
}
