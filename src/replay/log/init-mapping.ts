import { isIP } from 'node:net';
import { chooseFormat, sampleOf } from './choose-format.js';
import { parseObject } from './lines/json-lines.js';
import { TimeReader } from './lines/time-reader.js';
import { type LogFormat, WEIR_CALL } from './log-format.js';
import { LogError } from './logged-request.js';
import { LogSource } from './read/log-source.js';

/** A member of the JSON lines, with values of different lines. */
interface Member {
  /** Nested names are joined by dots. */
  readonly name: string;
  readonly values: readonly string[];
}

/** A meaning that a member may have: a key of `log` in a mapping. */
interface Meaning {
  readonly key: string;
  readonly name: RegExp;
  readonly value: (text: string) => boolean;
}

const times = new TimeReader();
const METHOD = /^(?:GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH)$/;

const MEANINGS: readonly Meaning[] = [
  {
    key: 'time',
    name: /(?:time|timestamp|date|^ts|_at)$/,
    value: (text) => times.read(text, 0, text.length),
  },
  { key: 'method', name: /method|verb/, value: (text) => METHOD.test(text) },
  { key: 'path', name: /path|uri|url|target/, value: (text) => text.startsWith('/') },
  { key: 'host', name: /host$|authority|vhost/, value: (text) => /^[\w.:[\]-]+$/.test(text) },
  { key: 'status', name: /status|code/, value: (text) => /^[1-5]\d\d$/.test(text) },
  { key: 'duration', name: /duration|latency|elapsed|took/, value: (text) => /^\d+(?:\.\d+)?$/.test(text) },
  { key: 'request_id', name: /request[-_.]?id$|^x-request-id$/, value: () => true },
  { key: 'remote_address', name: /remote|client|peer|(?:^|[._-])ip$/, value: isAddress },
];

/** Names of members that tell callers apart, with the best ones first. */
const CALLERS = [
  /tenant/,
  /customer|account|organi[sz]ation|(?:^|[._-])org(?:$|[._-])|workspace|project/,
  /api[-_]?key/,
  /consumer|client[-_]?id|user[-_]?id|(?:^|[._-])user$|subject|(?:^|[._-])sub$/,
];
const MAX_CALLERS = 3;
const MAX_OTHERS = 8;
const MAX_DEPTH = 3;

/**
 * Returns a mapping for a log whose first lines are JSON, or have a built-in format: a file for `--envoy`. Throws
 * {@link LogError}.
 */
export async function initMapping(paths: readonly string[]): Promise<string> {
  const [path = '-'] = paths;
  const lines = await firstLines(path);
  if (lines.length === 0) throw new LogError(`${path}: the log has no lines`);
  const format = chooseFormat(lines, [], false);
  if (format?.operators.has(WEIR_CALL))
    throw new LogError(`${path} needs no mapping, because its lines have descriptors (${format.title})`);
  if (format !== undefined) return mappingOf(path, [`# The log has ${format.title}.`], actionsOf(format));
  const members = membersOf(lines);
  if (members.length === 0)
    throw new LogError(
      `${path} has neither JSON lines nor a known format; name the format with --log-format`,
    );
  const found = meaningsOf(members);
  if (!found.has('time')) throw new LogError(`${path}: no member of the lines has the time of the request`);
  return mappingOf(path, logLines(found, members), actionsFor(found));
}

async function firstLines(path: string): Promise<readonly string[]> {
  const source = await LogSource.open(path);
  try {
    const chunks: Buffer[] = [];
    let chunk = await source.next(0);
    while (chunk !== undefined && !chunk.includes('\n')) {
      chunks.push(chunk);
      chunk = await source.next(0);
    }
    return sampleOf(Buffer.concat(chunk === undefined ? chunks : [...chunks, chunk]), chunk === undefined);
  } finally {
    source.close();
  }
}

/** Returns the members of lines with their texts and numbers. */
function membersOf(lines: readonly string[]): readonly Member[] {
  const found = new Map<string, string[]>();
  const collect = (object: Readonly<Record<string, unknown>>, prefix: string, depth: number): void => {
    for (const [key, value] of Object.entries(object)) {
      const name = prefix + key;
      if (typeof value === 'object' && value !== null && !Array.isArray(value) && depth < MAX_DEPTH)
        collect(value as Readonly<Record<string, unknown>>, `${name}.`, depth + 1);
      else if (typeof value === 'string' || typeof value === 'number') {
        const values = found.get(name) ?? [];
        if (String(value) !== '-') values.push(String(value));
        found.set(name, values);
      }
    }
  };
  for (const line of lines) {
    const parsed = parseObject(line);
    if (typeof parsed === 'object') collect(parsed, '', 1);
  }
  return [...found].map(([name, values]) => ({ name, values }));
}

/** Returns the members by their keys in `log`. */
function meaningsOf(members: readonly Member[]): ReadonlyMap<string, Member> {
  const found = new Map<string, Member>();
  const used = new Set<Member>();
  const add = (key: string, member: Member | undefined): void => {
    if (member === undefined || found.has(key)) return;
    found.set(key, member);
    used.add(member);
  };
  const has = ({ values }: Member, { value }: Meaning) => values.length > 0 && values.every(value);
  for (const meaning of MEANINGS) {
    const isFree = (member: Member) => !used.has(member) && has(member, meaning);
    add(
      meaning.key,
      members.find((member) => meaning.name.test(member.name.toLowerCase()) && isFree(member)),
    );
  }
  const [time] = MEANINGS;
  add(
    'time',
    members.find((member) => !used.has(member) && has(member, time as Meaning)),
  );
  const isCaller = (member: Member, name: RegExp) =>
    !used.has(member) && name.test(member.name.toLowerCase());
  for (const name of CALLERS)
    for (const member of members)
      if (isCaller(member, name) && used.size < MEANINGS.length + MAX_CALLERS)
        add(headerName(member.name), member);
  return found;
}

/** Returns the name of the request header that a member probably has: `x-tenant` for `headers.x_tenant`. */
function headerName(member: string): string {
  return (member.split('.').at(-1) ?? '').toLowerCase().replaceAll('_', '-');
}

function logLines(found: ReadonlyMap<string, Member>, members: readonly Member[]): readonly string[] {
  const used = new Set(found.values());
  const others = members.filter((member) => !used.has(member)).map(({ name }) => name.slice(0, 40));
  const more = others.length > MAX_OTHERS ? ', …' : '';
  return [
    '# The members of the JSON lines by meaning. Other keys than these are names of request headers.',
    'log:',
    ...[...found].map(([key, { name }]) => `  ${scalar(key)}: ${scalar(name)}`),
    ...(others.length === 0
      ? []
      : [`  # Not used: ${others.slice(0, MAX_OTHERS).map(scalar).join(', ')}${more}`]),
  ];
}

const METHOD_ACTION = action(':method', 'method');
const PATH_ACTION = action(':path', 'path');

function action(header: string, key: string): string {
  return `request_headers: { header_name: ${scalar(header)}, descriptor_key: ${scalar(key)} }`;
}

/** Returns actions for a mapped log: its callers, or else their addresses, or else method and path. */
function actionsFor(found: ReadonlyMap<string, Member>): readonly string[] {
  const callers = [...found.keys()].filter((key) => !MEANINGS.some((meaning) => meaning.key === key));
  const [caller] = callers;
  if (caller !== undefined) return [action(caller, caller.replace(/^x-/, '').replaceAll('-', '_'))];
  if (found.has('remote_address')) return ['remote_address: {}'];
  return found.has('path') ? [METHOD_ACTION, PATH_ACTION] : ['generic_key: { descriptor_value: all }'];
}

/** Returns actions for a log with a built-in format. */
function actionsOf(format: LogFormat): readonly string[] {
  const address = format.operators.has('DOWNSTREAM_REMOTE_ADDRESS');
  return address ? ['remote_address: {}'] : [METHOD_ACTION, PATH_ACTION];
}

function mappingOf(path: string, log: readonly string[], actions: readonly string[]): string {
  return [
    `# Mapping of ${path.replaceAll(/\s/g, ' ')} for weir replay. Edit it, and pass it with --envoy.`,
    '# The domain of the policy.',
    'domain: default',
    ...log,
    '# The descriptors of a request, as in rate_limits of Envoy: one for each list of actions.',
    'rate_limits:',
    '  - actions:',
    ...actions.map((one) => `      - ${one}`),
    '  # Another descriptor, for the method and path:',
    '  # - actions:',
    `  #     - ${METHOD_ACTION}`,
    `  #     - ${PATH_ACTION}`,
    '',
  ].join('\n');
}

/** Returns a text as a scalar of YAML. */
function scalar(text: string): string {
  return /^[A-Za-z][\w.-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
}

function isAddress(text: string): boolean {
  return isIP(text) !== 0 || isIP(text.replace(/^\[(.*)\](?::\d+)?$/, '$1').replace(/:\d+$/, '')) !== 0;
}
