import { parseGoDuration } from '../../config/yaml/go-duration.js';
import { MAX_UNREADABLE } from '../../replay/log/logged-request.js';
import { type Gate, parseGate } from '../../replay/report/gates.js';
import { LOAD_OPTIONS } from '../load-options.js';

/** Options for reading a log. */
export const LOG_OPTIONS = {
  envoy: { type: 'string', multiple: true },
  'log-format': { type: 'string' },
  by: { type: 'string' },
  window: { type: 'string' },
  sampled: { type: 'string' },
  'max-unreadable': { type: 'string' },
} as const;

/** Options of `weir replay` and `weir diff --replay`. */
export const REPORT_OPTIONS = {
  'as-active': { type: 'boolean' },
  top: { type: 'string' },
  warm: { type: 'string' },
  slack: { type: 'string' },
  'max-newly-denied': { type: 'string', multiple: true },
  html: { type: 'string' },
  anonymise: { type: 'boolean' },
  ...LOG_OPTIONS,
} as const;

/** Options of `weir replay`. */
export const REPLAY_OPTIONS = {
  policy: { type: 'string' },
  against: { type: 'string' },
  json: { type: 'string' },
  init: { type: 'boolean' },
  ...REPORT_OPTIONS,
  ...LOAD_OPTIONS,
} as const;

/** Values of {@link REPORT_OPTIONS}, as they are on the command line. */
export interface ReportValues {
  readonly envoy?: readonly string[] | undefined;
  readonly 'log-format'?: string | undefined;
  readonly by?: string | undefined;
  readonly html?: string | undefined;
  readonly anonymise?: boolean | undefined;
  readonly 'hold-entry'?: string | undefined;
}

/** Values of options, as they are on the command line. */
type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** How to read a log. */
export interface LogNumbers {
  readonly windowMicros: number;
  readonly statedShare: number | undefined;
  readonly maxUnreadable: number;
}

/** Numbers of {@link REPORT_OPTIONS}. */
export interface ReplayNumbers extends LogNumbers {
  readonly shownGroups: number;
  readonly warmMicros: number;
  readonly slackMicros: number;
  readonly gates: readonly Gate[];
}

const DEFAULT_TOP = 20;
const MAX_TOP = 10_000;

/** Converts the values of {@link LOG_OPTIONS}. Returns an error message if one is invalid. */
export function readLogNumbers(values: Values): LogNumbers | string {
  const windowMicros = durationMicros(values, 'window', '1m');
  const statedShare = shareOf(values, 'sampled', undefined);
  const maxUnreadable = shareOf(values, 'max-unreadable', MAX_UNREADABLE);
  if (typeof windowMicros === 'string') return windowMicros;
  if (typeof statedShare === 'string') return statedShare;
  if (typeof maxUnreadable === 'string') return maxUnreadable;
  return { windowMicros, statedShare, maxUnreadable };
}

/** Converts the numbers of {@link REPORT_OPTIONS}. Returns an error message if one is invalid. */
export function readReplayNumbers(values: Values): ReplayNumbers | string {
  const log = readLogNumbers(values);
  const warmMicros = durationMicros(values, 'warm', '0s');
  const slackMicros = durationMicros(values, 'slack', '0s');
  if (typeof log === 'string') return log;
  if (typeof warmMicros === 'string') return warmMicros;
  if (typeof slackMicros === 'string') return slackMicros;
  const shownGroups = values['top'] === undefined ? DEFAULT_TOP : Number(values['top']);
  if (!Number.isInteger(shownGroups) || shownGroups < 1 || shownGroups > MAX_TOP)
    return `--top must be a whole number from 1 to ${MAX_TOP}`;
  const gates: Gate[] = [];
  for (const text of (values['max-newly-denied'] as readonly string[] | undefined) ?? []) {
    const gate = parseGate(text);
    if (typeof gate === 'string') return gate;
    gates.push(gate);
  }
  return { ...log, shownGroups, warmMicros, slackMicros, gates };
}

function durationMicros(values: Values, name: string, absent: string): number | string {
  const nanos = parseGoDuration(String(values[name] ?? absent));
  if (nanos === undefined || nanos < 0n) return `--${name} must be a duration such as 500ms, 60s or 1h`;
  return Number(nanos / 1000n);
}

function shareOf<Absent extends number | undefined>(
  values: Values,
  name: string,
  absent: Absent,
): number | Absent | string {
  const text = values[name];
  if (text === undefined) return absent;
  const share = numberOf(String(text));
  return share > 0 && share <= 1 ? share : `--${name} must be a share such as 5% or 0.05`;
}

/** Reads `5%` or `0.05`. Returns NaN if the text is neither. */
function numberOf(text: string): number {
  const [, digits, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  return Number(digits) / (percent === '%' ? 100 : 1);
}
