import type { BucketStore, LocalStore, Take, TakeOutcome } from '../limiter/bucket-store.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import type { Rule } from '../policy/rule.js';
import { MemoryStore } from '../storage/memory/memory-store.js';
import { Decider, LogClock, type ReplayedServer } from './decide.js';
import { type NeededLimits, UnlimitedStore } from './limits-needed.js';
import { logName, readLines } from './log-lines.js';
import {
  decisionReader,
  type LineFault,
  type LineReader,
  LogFacts,
  type LoggedCall,
  mappedReader,
  parseLine,
} from './log-request.js';
import { type JsonLine, type LogMap, valueAt } from './replay-map.js';
import { MAX_SORTED_MICROS, StartOrder, type Timed, TimeQueue } from './start-order.js';
import { Tally } from './tally.js';

/** Options of {@link Replay}. */
export interface ReplayOptions {
  /** The policy whose decisions are reported. */
  readonly policy: PolicySet;
  /** The policy to compare with; undefined: what the log says. */
  readonly against: PolicySet | undefined;
  /** Undefined for weir's decision log. */
  readonly map: LogMap | undefined;
  /** Key of the entries whose values are the callers. */
  readonly by: string | undefined;
  /** Files, or `-` for standard input. */
  readonly logs: readonly string[];
  readonly server: ReplayedServer;
  /** Ends the replay, with a result for what was read. */
  readonly signal: AbortSignal;
  /** Called for each batch of lines, with the number of lines so far. */
  readonly onProgress: (lines: number) => void;
}

/** Lines that were not replayed for one reason. */
export interface FaultyLines {
  count: number;
  /** `file:line` of the first one. */
  readonly first: string;
  /** What to do about the first one. */
  readonly remedy: string | undefined;
}

/** What a replay found. */
export interface ReplayResult {
  readonly tally: Tally;
  readonly facts: LogFacts;
  readonly faults: ReadonlyMap<LineFault, FaultyLines>;
  /** Lines that were read, without empty ones. */
  readonly lines: number;
  /** Requests that came too late to be sorted. */
  readonly late: number;
  /** Times of the first and the last request. */
  readonly firstMicros: number;
  readonly lastMicros: number;
  readonly needed: ReadonlyMap<Rule, NeededLimits>;
  /** Requests with holds whose end the log does not tell. */
  readonly holdsWithoutEnd: number;
  /** Buckets of the policy that were dropped because there were too many. */
  readonly evictions: number;
  readonly isPartial: boolean;
}

/** Lines that were written this much before the previous ones belong to another log, in microseconds. */
export const JUMP_MICROS = 60_000_000;
/** The end of a request. */
interface PendingEnd extends Timed {
  readonly call: LoggedCall;
  /** Tokens of the holds that the start placed, by policy. */
  readonly tokens: readonly (string | undefined)[];
  /** Whether each policy allowed the request. A denied request has no use to report. */
  readonly allowed: readonly boolean[];
}

interface OpenLog {
  readonly path: string;
  readonly batches: ReturnType<typeof readLines>;
}

/** Decides the requests of logs again. */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #clock = new LogClock();
  readonly #facts = new LogFacts();
  readonly #tally: Tally;
  readonly #order = new StartOrder<LoggedCall>(MAX_SORTED_MICROS, JUMP_MICROS);
  readonly #ends = new TimeQueue<PendingEnd>();
  readonly #read: LineReader;
  readonly #before: Decider | undefined;
  readonly #after: Decider;
  readonly #store: MemoryStore;
  readonly #unlimited: UnlimitedStore;
  /** The policies that decide each call. The last one may be the new policy without limits. */
  readonly #deciders: readonly Decider[];
  readonly #faults = new Map<LineFault, FaultyLines>();
  #lines = 0;
  #holdsWithoutEnd = 0;
  #firstMicros = Number.NaN;

  constructor(options: ReplayOptions) {
    const { policy, against, map, by } = options;
    this.#options = options;
    this.#tally = new Tally(by);
    const wantsEnds = map?.end !== undefined || [policy, against].some((set) => set && holdsIn(set));
    this.#unlimited = new UnlimitedStore(this.#newStore(), this.#clock);
    this.#store = this.#newStore();
    this.#before = against && this.#newDecider(against, this.#newStore());
    if (wantsEnds) {
      // What a request uses at its end depends on whether its start was allowed.
      this.#after = this.#newDecider(policy, this.#store);
      this.#deciders = [this.#after, this.#newDecider(policy, this.#unlimited)];
    } else {
      this.#after = this.#newDecider(policy, observed(this.#store, this.#unlimited));
      this.#deciders = [this.#after];
    }
    if (this.#before !== undefined) this.#deciders = [this.#before, ...this.#deciders];
    this.#read = map === undefined ? decisionReader(this.#facts) : mappedReader(map, wantsEnds, this.#facts);
  }

  /** Reads the logs. Throws a LogError if one cannot be read. */
  async run(): Promise<ReplayResult> {
    const logs = this.#options.logs.map((path): OpenLog => ({ path, batches: readLines(path) }));
    for (const log of logs) this.#order.open(log);
    const { signal } = this.#options;
    const stopped = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined));
    });
    for (;;) {
      const log = this.#order.furthestBehind() as OpenLog | undefined;
      // A pipe may have no lines for a long time.
      if (log !== undefined) await Promise.race([this.#readBatch(log), stopped]);
      // The requests that wait to be sorted belong to the report of a replay that was stopped.
      if (signal.aborted) for (const open of logs) this.#order.end(open);
      for (let call = this.#order.next(); call !== undefined; call = this.#order.next())
        await this.#replay(call);
      if (log === undefined || signal.aborted) break;
      this.#options.onProgress(this.#lines);
    }
    for (const { batches } of logs) void batches.return(undefined);
    return {
      tally: this.#tally,
      facts: this.#facts,
      faults: this.#faults,
      lines: this.#lines,
      late: this.#order.late,
      firstMicros: this.#firstMicros,
      lastMicros: this.#clock.wallMicros(),
      needed: this.#unlimited.needed(),
      holdsWithoutEnd: this.#holdsWithoutEnd,
      evictions: this.#store.evictions,
      isPartial: signal.aborted,
    };
  }

  #newStore(): MemoryStore {
    const { maxBuckets, maxBytes, countDeniedHits } = this.#options.server;
    return new MemoryStore({ clock: this.#clock, maxBuckets, maxBytes, countDeniedHits });
  }

  #newDecider(policy: PolicySet, store: BucketStore & LocalStore): Decider {
    const { server } = this.#options;
    return new Decider(policy, { clock: this.#clock, store, server, rowOf: this.#tally.rowOf });
  }

  async #readBatch(log: OpenLog): Promise<void> {
    const { value, done } = await log.batches.next();
    if (done === true) {
      this.#order.end(log);
      return;
    }
    const { first, lines } = value;
    for (let at = 0; at < lines.length; at++) {
      const line = lines[at];
      if (line === '' || line === '\r') continue;
      this.#lines++;
      const read = line === undefined ? 'too_long' : this.#read(line);
      if (typeof read !== 'string') this.#order.add(log, read);
      else this.#addFault(read, `${logName(log.path)}:${first + at}`, line);
    }
  }

  #addFault(fault: LineFault, first: string, line = ''): void {
    const known = this.#faults.get(fault);
    if (known !== undefined) known.count++;
    else this.#faults.set(fault, { count: 1, first, remedy: remedyOf(fault, line, this.#options.map) });
  }

  async #replay(call: LoggedCall): Promise<void> {
    const { timeMicros } = call;
    while (this.#ends.firstMicros <= timeMicros) await this.#end(this.#ends.take() as PendingEnd);
    this.#clock.advance(timeMicros);
    if (Number.isNaN(this.#firstMicros)) this.#firstMicros = timeMicros;
    for (const decider of this.#deciders) {
      const late = decider.decide(call);
      if (late !== undefined) await late;
    }
    // A line that only ends holds is not a request.
    if (call.request.descriptors.length > 0)
      this.#tally.add(call, this.#before?.verdict, this.#after.verdict);
    await this.#planEnd(call);
  }

  /** Plans the end of a request that placed holds, or whose end is a call. */
  async #planEnd(call: LoggedCall): Promise<void> {
    const { end, holdIds, timeMicros } = call;
    const holds = this.#deciders.some(({ token }) => token !== undefined);
    if (end?.durationMicros !== undefined && (holds || end.descriptors.length > 0)) {
      const tokens = this.#deciders.map(({ token }) => token);
      const allowed = this.#deciders.map(({ verdict }) => !verdict.denied);
      this.#ends.add({ timeMicros: timeMicros + end.durationMicros, call, tokens, allowed });
    }
    if (!holds || end !== undefined || holdIds.length > 0) return;
    // The log knows no end of a request that it says was denied, or whose limits held nothing. It ends at once.
    if (!call.denied) this.#holdsWithoutEnd++;
    for (const decider of this.#deciders)
      await decider.end(call.request.domain, decider.token, undefined, []);
  }

  async #end({ timeMicros, call, tokens, allowed }: PendingEnd): Promise<void> {
    this.#clock.advance(timeMicros);
    const { hits, descriptors } = call.end as NonNullable<LoggedCall['end']>;
    for (const [at, decider] of this.#deciders.entries()) {
      const sent = allowed[at] === true ? descriptors : [];
      await decider.end(call.request.domain, tokens[at], hits, sent);
    }
  }
}

/** Returns whether a policy has limits that hold something until requests end. */
function holdsIn({ domains }: PolicySet): boolean {
  return [...domains.values()].some(({ hasHolds }) => hasHolds);
}

/** Returns a store that shows its takes to another one. */
function observed(store: MemoryStore, observer: UnlimitedStore): BucketStore & LocalStore {
  const take = (takes: readonly Take[]): readonly TakeOutcome[] => {
    observer.take(takes);
    return store.take(takes);
  };
  return { take, close: () => store.close() };
}

/** Maximum number of members, and of characters of a value, that a remedy repeats. */
const MAX_MEMBERS = 12;
const MAX_SHOWN = 40;

/** The manual about logs and maps. */
const PAGE = 'docs/operate/replay.md';

/** Returns what to do about a fault, from the first line that has it; undefined if nobody has to do anything. */
function remedyOf(fault: LineFault, text: string, map: LogMap | undefined): string | undefined {
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
