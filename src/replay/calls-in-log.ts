import type { RateLimitRequest } from '../codec/messages.js';
import { quantity } from '../quantity.js';
import type { EntrySources } from './entry-sources.js';
import { type MissingValue, missingValues, type Need } from './envoy/log-fields.js';
import type { RequestCalls } from './envoy/route-table.js';
import type { Columns } from './log/columns.js';
import { type LineValues, type LogFormat, WEIR_CALL } from './log/log-format.js';
import type { OpenLog } from './log/open-log.js';
import { readCall } from './log/weir-call.js';

/** The calls that a configuration of Envoy makes for logged requests. */
export interface ConfiguredCalls {
  readonly callsOf: (values: LineValues) => readonly RequestCalls[];
  readonly needs: readonly Need[];
  readonly sources: EntrySources;
}

/** The calls of the requests in a log. */
export interface LoggedCalls {
  readonly callsOf: (values: LineValues) => readonly RequestCalls[];
  /** Values that the log lacks and that only some descriptors need. */
  readonly missing: readonly MissingValue[];
}

/**
 * Returns the calls of the requests in a log: those in its lines, or those that the configuration `envoy` makes.
 * `columns` gets the operators whose values they need. Returns a message if the log does not have them.
 */
export function callsInLog(
  { formats, members }: Pick<OpenLog, 'formats' | 'members'>,
  columns: Columns,
  envoy: ConfiguredCalls | undefined,
): LoggedCalls | string {
  const missing = missingIn(formats, envoy);
  const needed = missing.filter(({ optional }) => !optional);
  if (needed.length > 0) return missingMessage(needed, members);
  if (envoy === undefined && !formats.every(({ operators }) => operators.has(WEIR_CALL)))
    return (
      'the log has no descriptors; name the configuration of Envoy that makes them with --envoy, or write a mapping ' +
      'with --init'
    );
  const call = columns.indexOf(WEIR_CALL);
  const callsOf = (values: LineValues): readonly RequestCalls[] => {
    const text = values[call];
    return text === undefined ? (envoy?.callsOf(values) ?? []) : [loggedCall(readCall(text))];
  };
  return { callsOf, missing };
}

/** Returns the call of a line that contains it. Its hits move to the descriptors, which the calls at the end have. */
function loggedCall({ domain, descriptors, hitsAddend }: RateLimitRequest): RequestCalls {
  const start =
    hitsAddend === 0
      ? descriptors
      : descriptors.map((descriptor) => ({ ...descriptor, hitsAddend: descriptor.hitsAddend ?? hitsAddend }));
  return { domain, start, end: [] };
}

/** Returns the values that the calls need and one of the formats lacks. */
function missingIn(
  formats: readonly LogFormat[],
  envoy: ConfiguredCalls | undefined,
): readonly MissingValue[] {
  const byMember = new Map<string, MissingValue>();
  for (const format of formats) {
    if (format.operators.has(WEIR_CALL)) continue;
    for (const missing of missingValues(envoy?.needs ?? [], format)) byMember.set(missing.member, missing);
  }
  return [...byMember.values()];
}

function missingMessage(missing: readonly MissingValue[], members: readonly string[]): string {
  const names = missing.map(({ member }) => member.slice(0, member.indexOf(':')));
  const written = members.find((member) => names.includes(member.toLowerCase()));
  if (written !== undefined)
    return (
      `the lines have the member "${written}", but no file of --envoy contains the format of the log; pass the ` +
      'configuration with its access_log, such as the EnvoyProxy of Envoy Gateway'
    );
  const lines = missing.map(({ member, users }) => `  ${member}   # for ${users.join(', ')}\n`);
  return (
    `the log lacks ${quantity(missing.length, 'value')} that the rate limits need; add to json_format of the ` +
    `access_log, or to format.json of an EnvoyProxy:\n${lines.join('')}`.trimEnd()
  );
}
