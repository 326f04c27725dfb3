import { type LineFault, parseLine } from './log-request.js';
import { type JsonLine, type LogMap, valueAt } from './replay-map.js';

/** Maximum number of members, and of characters of a value, that a remedy repeats. */
const MAX_MEMBERS = 12;
const MAX_SHOWN = 40;

/** The manual about logs and maps. */
const PAGE = 'docs/operate/replay.md';

/** Returns what to do about a fault, from the first line that has it; undefined if nobody has to do anything. */
export function remedyOf(fault: LineFault, text: string, map: LogMap | undefined): string | undefined {
  const line = parseLine(text);
  if (line === undefined) return fault === 'not_json' ? jsonRemedy(text) : undefined;
  if (map !== undefined && Array.isArray(line['descriptors']) && line['decision'] !== undefined)
    return "this is weir's decision log, which needs no map; remove --map";
  switch (fault) {
    case 'no_descriptors':
      return `for a log that is not weir's decision log, pass a map with --map; ${PAGE} describes maps`;
    case 'no_time':
      return map === undefined ? undefined : timeRemedy(line, map);
    case 'no_method':
      if (typeof line['log'] === 'string')
        return 'a container runtime has packed each line into JSON; unpack the lines with jq -rj .log';
      return map?.method && memberRemedy(line, 'method', map.method.text);
    case 'no_values': {
      const entries = map?.start.descriptors.flat() ?? [];
      const missing = entries.find(({ from }) => from !== undefined && valueAt(line, from) === undefined);
      return missing?.from && memberRemedy(line, 'from', missing.from.text);
    }
    case 'bad_number': {
      const { start, end } = map ?? {};
      const member = [start?.hits, end?.hits].find((hits) => typeof hits === 'object' && hits.text in line);
      return typeof member === 'object' ? `"${member.text}" is ${shown(line[member.text])}` : undefined;
    }
    default:
      return undefined;
  }
}

function jsonRemedy(text: string): string | undefined {
  if (/[\ufffd\0]/.test(text)) return 'weir reads UTF-8 and gzip; decompress or convert other files first';
  const manyLines = /^\s*(?:(\[)\s*(?:\{|$)|\{?\s*$|"[^"]*"\s*:)/.exec(text);
  if (manyLines !== null)
    return `weir reads one object on each line; convert the log with jq -c ${manyLines[1] ? "'.[]'" : '.'}`;
  if (text.startsWith('{')) return undefined;
  if (/\{\s*"/.test(text)) return 'remove what each line has before and after its JSON object';
  return `weir reads JSON lines; ${PAGE} shows how Envoy, Istio and Envoy Gateway write them`;
}

function timeRemedy(line: JsonLine, { time }: LogMap): string {
  const value = valueAt(line, time);
  if (value === undefined) return memberRemedy(line, 'time', time.text);
  return `"${time.text}" is ${shown(value)}; a time is RFC 3339 with a time zone, or seconds, ms or µs since 1970`;
}

function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, MAX_SHOWN);
}

function memberRemedy(line: JsonLine, key: string, name: string): string {
  if (name in line) return `"${name}" is ${shown(line[name])} in this line`;
  const names = Object.keys(line).slice(0, MAX_MEMBERS).join(', ');
  return `"${key}" in the map is "${name}", but the line has: ${names}`;
}
