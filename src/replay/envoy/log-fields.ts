import type { Position } from '../../config/yaml/config-problem.js';
import type { FieldReader } from '../../config/yaml/field-reader.js';
import type { Columns } from '../log/columns.js';
import { formatOf, type Operator } from '../log/format-string.js';
import type { LineValues, LogFormat } from '../log/log-format.js';

/** Returns a value of a logged request; undefined if it does not exist. */
export type LogValue = (values: LineValues) => string | undefined;

/** A condition of a logged request. */
export type Predicate = (values: LineValues) => boolean;

/** When Envoy derives a descriptor: before it forwards the request, or when the stream is done. */
export type When = 'start' | 'end';

/** A value that a part of the configuration needs from the log. */
export interface Need {
  /** Operators of which one is enough. */
  readonly operators: readonly Operator[];
  /** The format string to add to a log without the value: `%REQ(X-TENANT)%`. */
  readonly format: string;
  /** The part of the configuration: `request_headers`. */
  readonly user: string;
  readonly file: string;
  readonly at: Position;
  /** True if descriptors are still sent without the value, but may differ from those that Envoy sent. */
  readonly optional: boolean;
}

/** The place that needs a value, and the reason. */
export interface NeedOptions {
  readonly reader: FieldReader;
  readonly user: string;
  /** Operators that make the value unnecessary. */
  readonly instead?: readonly Operator[];
  readonly optional?: boolean;
}

export const ROUTE_NAME: Operator = 'ROUTE_NAME';

/** The path as the client sent it. The router changes `:path`, and keeps the original in a header. */
const ORIGINAL_PATH: readonly Operator[] = ['REQ(x-envoy-original-path)', 'PATH', 'PATH(WQ)'];
const CURRENT_PATH: readonly Operator[] = ['REQ(:path)', 'PATH(WQ:PATH)'];
const PATH_FORMAT = '%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%';

/** The values of the log that a configuration needs. Registers their operators. */
export class LogFields {
  readonly needs: Need[] = [];
  /** For `EntrySources`. */
  readonly sources = new Map<string, Set<string>>();
  private readonly columns: Columns;

  constructor(columns: Columns) {
    this.columns = columns;
  }

  /** Records the header or query parameter that the values of an entry come from. */
  addSource(key: string, name: string): void {
    const names = this.sources.get(key) ?? new Set();
    this.sources.set(key, names.add(name));
  }

  /** Returns a value that the log may lack without harm. */
  optional(operator: Operator): LogValue {
    return this.read([operator]);
  }

  /** Returns the value of the first of `operators` that has one. */
  value(
    operators: readonly Operator[],
    options: NeedOptions,
    format = formatOf(operators[0] ?? ''),
  ): LogValue {
    const { reader, user, instead = [], optional = false } = options;
    const needed = [...operators, ...instead];
    this.needs.push({
      operators: needed,
      format,
      user,
      file: reader.problems.file,
      at: reader.map.at,
      optional,
    });
    return this.read(operators);
  }

  /** Returns the value of a request header as it is at the start or the end of the stream. */
  header(name: string, when: When, options: NeedOptions): LogValue {
    const header = name.toLowerCase();
    if (header === ':path') return this.path(when, options);
    // Envoy keeps the header `host` as `:authority`.
    return this.value([`REQ(${header === 'host' ? ':authority' : header})`], options);
  }

  /** Returns the path with its query. */
  path(when: When, options: NeedOptions): LogValue {
    const operators =
      when === 'start' ? [...ORIGINAL_PATH, ...CURRENT_PATH] : [...CURRENT_PATH, ...ORIGINAL_PATH];
    return this.value(operators, options, PATH_FORMAT);
  }

  /** Adds the need of the path before the router rewrites it. */
  needOriginalPath(options: NeedOptions): void {
    this.value(ORIGINAL_PATH, options, PATH_FORMAT);
  }

  /** Returns the address of the client without its port. */
  remoteAddress(options: NeedOptions): LogValue {
    const operators = ['DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT', 'DOWNSTREAM_REMOTE_ADDRESS'];
    const value = this.value(operators, options);
    return (values) => withoutPort(value(values));
  }

  private read(operators: readonly Operator[]): LogValue {
    const indexes = operators.map((operator) => this.columns.indexOf(operator));
    const [first = 0] = indexes;
    if (indexes.length === 1) return (values) => values[first];
    return (values) => {
      for (const index of indexes) if (values[index] !== undefined) return values[index];
      return undefined;
    };
  }
}

/** Returns the address of `10.0.0.1:80`, `[::1]:80` and plain addresses. */
function withoutPort(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  if (address.startsWith('[')) return address.slice(1, address.indexOf(']'));
  const colon = address.indexOf(':');
  return colon >= 0 && colon === address.lastIndexOf(':') ? address.slice(0, colon) : address;
}

/** A value that a log lacks. */
export interface MissingValue {
  /** The member to add to `json_format` of the `access_log`: `x-tenant: "%REQ(X-TENANT)%"`. */
  readonly member: string;
  /** The parts of the configuration that need the value: `envoy.yaml:12: request_headers`. */
  readonly users: readonly string[];
  readonly optional: boolean;
}

/** Returns the values that a configuration needs and a log with this format lacks. */
export function missingValues(needs: readonly Need[], format: LogFormat): readonly MissingValue[] {
  const found = new Map<string, { users: Set<string>; optional: boolean }>();
  for (const need of needs) {
    if (need.operators.some((operator) => format.operators.has(operator))) continue;
    const missing = found.get(need.format) ?? { users: new Set<string>(), optional: true };
    missing.users.add(`${need.file}:${need.at.line}: ${need.user}`);
    missing.optional &&= need.optional;
    found.set(need.format, missing);
  }
  return [...found].map(([text, { users, optional }]) => ({
    member: `${memberName(text)}: "${text}"`,
    users: [...users],
    optional,
  }));
}

/** Returns a name for a member of `json_format`: the header, the last key of metadata, or the operator. */
function memberName(format: string): string {
  const [, name = '', argument = ''] = /^%([A-Z0-9_]+)(?:\((.*)\))?/.exec(format) ?? [];
  const last = argument.split(/[?:]/).at(-1) ?? '';
  return (last === '' || /^(?:WQ|NQ)$/.test(last) ? name : last).toLowerCase();
}
