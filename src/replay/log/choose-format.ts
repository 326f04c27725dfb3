import { BUILT_IN_FORMATS } from './built-in-formats.js';
import { parseObject } from './lines/json-lines.js';
import { ABSENT, LineFields } from './lines/line-fields.js';
import { lineReader } from './lines/line-reader.js';
import { TimeReader } from './lines/time-reader.js';
import { DECIDED_AT, type LogFormat, START_TIME } from './log-format.js';

/** Lines at the beginning of a file that choose its format. */
export const SAMPLE_LINES = 200;
/** Share of the sample that a format must fit. */
const LEAST_FIT = 0.5;
/** Share of the members of a JSON format that a line must have. */
const LEAST_MEMBERS = 0.5;

/**
 * Returns the format that most of some lines have: one of `formats`, or else a built-in one. If the lines fit several
 * JSON formats, it is the one that knows most of their members. The lines have one character for each byte.
 */
export function chooseFormat(
  lines: readonly string[],
  formats: readonly LogFormat[],
  onlyThese: boolean,
): LogFormat | undefined {
  const fitting = formats.filter((format) => fits(lines, format));
  if (fitting.length === 0 && !onlyThese) return BUILT_IN_FORMATS.find((format) => fits(lines, format));
  const [first = ''] = lines;
  const known = ({ syntax }: LogFormat): number =>
    syntax.kind === 'json' ? knownMembers(first, syntax.members) : 0;
  return fitting.toSorted((one, other) => known(other) - known(one))[0];
}

/** Returns whether most lines have a format. */
function fits(lines: readonly string[], format: LogFormat): boolean {
  const operators = [START_TIME, DECIDED_AT, ...format.operators];
  const read = lineReader(format, operators);
  const fields = new LineFields(operators.length);
  const times = new TimeReader();
  const { syntax } = format;
  const members = syntax.kind === 'json' ? syntax.members : [];
  let skipped = 0;
  const fitting = lines.filter((line) => {
    const fault = read(line, fields);
    if (fault === 'skipped') skipped++;
    if (fault !== undefined) return false;
    if (members.length > 0 && knownMembers(line, members) < LEAST_MEMBERS * members.length) return false;
    if (fields.from[1] !== ABSENT) return true;
    const time = fields.text(0, line) ?? '';
    return times.read(time, 0, time.length);
  }).length;
  return fitting > 0 && fitting >= LEAST_FIT * (lines.length - skipped);
}

/** Returns how many members a line has, even with the value null. */
function knownMembers(line: string, members: readonly { readonly path: readonly string[] }[]): number {
  const parsed = parseObject(line);
  if (typeof parsed === 'string') return 0;
  return members.filter(
    ({ path }) => Object.hasOwn(parsed, path[0] ?? '') || Object.hasOwn(parsed, path.join('.')),
  ).length;
}

/** Begins a line of a container log in /var/log/pods: `2026-11-25T16:42:00.123456789Z stdout F …`. */
const KUBERNETES_PREFIX = /^\d{4}-\d\d-\d\dT\S+ std(?:out|err) [FP] /;
/** A line of Docker's driver json-file. */
const DOCKER_LINE = /^\{"log":".*","stream":"std(?:out|err)"/;

/** Describes lines whose format is not one of `formats`, for a message. */
export function describeLines(lines: readonly string[], formats: readonly LogFormat[]): string {
  const [first = ''] = lines;
  if (KUBERNETES_PREFIX.test(first))
    return "the lines have the prefix of a Kubernetes node; remove it: cut -d ' ' -f 4- FILE | weir replay … -";
  if (DOCKER_LINE.test(first))
    return 'the lines are those of a container in Docker; unpack them: jq -rj .log FILE | weir replay … -';
  const names = memberNames(lines);
  if (names.length === 0) return 'the lines are not JSON';
  const lacking = formats.flatMap(({ syntax }) =>
    syntax.kind === 'json'
      ? syntax.members.map(({ path }) => path.join('.')).filter((name) => !names.includes(name))
      : [],
  );
  const lack = lacking.length === 0 ? '' : `, and lack ${memberList(lacking)}`;
  return `the lines are JSON with the members ${memberList(names)}${lack}`;
}

/** Returns the names of all members of JSON lines, with dots before those of nested objects. */
export function memberNames(lines: readonly string[]): readonly string[] {
  const names = new Set<string>();
  const collect = (object: Readonly<Record<string, unknown>>, prefix: string): void => {
    for (const [name, value] of Object.entries(object))
      if (typeof value === 'object' && value !== null && !Array.isArray(value))
        collect(value as Readonly<Record<string, unknown>>, `${prefix}${name}.`);
      else names.add(prefix + name);
  };
  for (const line of lines) {
    const parsed = parseObject(line);
    if (typeof parsed === 'object') collect(parsed, '');
  }
  return [...names];
}

const [MAX_NAMED, MAX_CHARACTERS] = [12, 40];

/** Returns names of members for a message. */
export function memberList(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMED).map((name) => `"${name.slice(0, MAX_CHARACTERS)}"`);
  const more = names.length - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}

/** Returns the sample of a file. `atEnd`: `bytes` is the whole file. */
export function sampleOf(bytes: Buffer, atEnd: boolean): readonly string[] {
  const lines = bytes.toString('latin1').split('\n', SAMPLE_LINES + 1);
  // The last line may be cut.
  if (lines.length > SAMPLE_LINES || !atEnd) lines.pop();
  return lines.map((line) => line.replace(/^\xef\xbb\xbf|\r$/g, '')).filter((line) => line !== '');
}
