import { EXCEEDED } from '../policy/match-work.js';
import type { PolicySet } from '../policy/policy-set.js';
import type { HoldNames } from '../service/answer/answer-options.js';
import { Divergence } from './decide/divergence.js';
import { type Deciding, PolicyReplay, type RequestTimes } from './decide/policy-replay.js';
import { RequestVerdict, Verdict } from './decide/verdict.js';
import type { RequestCalls } from './envoy/route-table.js';
import type { Columns } from './log/columns.js';
import { type LineValues, RATE_LIMITED, RESPONSE_FLAGS } from './log/log-format.js';
import type { LoggedRequest } from './log/logged-request.js';
import { SteadyClock } from './log/order/steady-clock.js';
import type { GroupTally } from './tally/group-tally.js';
import { Tally } from './tally/tally.js';

/** Options of a {@link Replay}. */
export interface ReplayOptions {
  readonly after: PolicySet;
  /** The policy to compare with. Without it, the log tells which requests were denied before. */
  readonly before: PolicySet | undefined;
  /** Returns the calls that Envoy makes for a request. */
  readonly callsOf: (values: LineValues) => readonly RequestCalls[];
  /** Gets the operators whose values the replay needs. */
  readonly columns: Columns;
  /** Groups of callers to count, by the key of a descriptor entry. */
  readonly groups: readonly GroupTally[];
  readonly holdNames: HoldNames;
  /** Requests in this time from the first one are decided and not counted, in microseconds. */
  readonly warmMicros: number;
  /** Called with the final verdict of each request, in the order of their start. */
  readonly onVerdict?: (after: RequestVerdict) => void;
}

/** A decided request, whose verdict later requests may make uncertain. */
interface Decided {
  /** Start of the request as logged. */
  readonly loggedMicros: number;
  readonly times: RequestTimes;
  readonly before: Verdict;
  readonly after: RequestVerdict;
  /** The values of {@link ReplayOptions.groups}. */
  readonly values: readonly (string | undefined)[];
}

/** Maximum number of {@link Replay.keys}. */
const MAX_KEYS = 20;
const TOO_MANY_REQUESTS = '429';

/** Decides the requests of a log with one or two policies, and counts the decisions. */
export class Replay {
  readonly tally: Tally;
  readonly after: PolicyReplay;
  readonly before: PolicyReplay | undefined;
  /** Times of the first and the last request that were counted, in microseconds since 1970. */
  firstMicros: number | undefined;
  lastMicros = 0;
  /** The first call in the log. */
  firstCall: RequestCalls | undefined;
  /** Whether the new policy has the domain of a call in the log. */
  knowsDomain = false;
  /** Other keys of entries than those of {@link ReplayOptions.groups}. */
  readonly keys = new Set<string>();
  readonly #options: ReplayOptions;
  readonly #flags: number;
  readonly #status: number;
  readonly #duration: number;
  /** Requests whose verdict is not final, in the order of their start. */
  #unsettled: Decided[] = [];
  readonly #time = new SteadyClock();
  #warmUntilMicros: number | undefined;
  readonly #divergence = new Divergence();

  constructor(options: ReplayOptions) {
    const { after, before, holdNames, columns } = options;
    this.#options = options;
    this.tally = new Tally(options.groups);
    this.after = new PolicyReplay(after, holdNames);
    this.before = before === undefined ? undefined : new PolicyReplay(before, holdNames);
    this.#flags = columns.indexOf(RESPONSE_FLAGS);
    this.#status = columns.indexOf('RESPONSE_CODE');
    this.#duration = columns.indexOf('DURATION');
  }

  /** Decides requests in the order of their start. A late one is decided at the time of its predecessor. */
  async add(requests: readonly LoggedRequest[]): Promise<void> {
    const deciding = this.#decide(requests);
    for (let step = deciding.next(); step.done !== true; ) step = deciding.next(await step.value);
  }

  *#decide(requests: readonly LoggedRequest[]): Deciding<void> {
    for (const { startMicros: loggedMicros, precisionMicros, values } of requests) {
      const startMicros = this.#time.read(loggedMicros);
      const durationMillis = Number(values[this.#duration] ?? 0);
      const times = {
        startMicros,
        endMicros: startMicros + precisionMicros,
        // An invalid duration counts as unknown.
        doneMicros: startMicros + (durationMillis >= 0 ? durationMillis * 1000 : 0),
      };
      const calls = this.#options.callsOf(values);
      this.firstCall ??= calls[0];
      this.knowsDomain ||= calls.some(({ domain }) => this.#options.after.domains.has(domain));
      const logged = new Verdict();
      logged.denied = this.#wasDenied(values);
      const before =
        this.before === undefined ? logged : yield* this.before.decide(calls, times, logged.denied);
      const after = yield* this.after.decide(calls, times, logged.denied);
      this.#settle(startMicros);
      if (before instanceof RequestVerdict) this.#divergence.compare(before, after, this.#unsettled);
      this.#unsettled.push({ loggedMicros, times, before, after, values: this.#valuesOf(calls) });
    }
  }

  #wasDenied(values: LineValues): boolean {
    const flags = values[this.#flags];
    if (flags === undefined) return values[this.#status] === TOO_MANY_REQUESTS;
    return flags === RATE_LIMITED || flags.split(',').includes(RATE_LIMITED);
  }

  #valuesOf(calls: readonly RequestCalls[]): readonly (string | undefined)[] {
    return this.#options.groups.map(({ key }) => this.#valueOf(calls, key));
  }

  /** Returns the value of the first entry with a key, after `derive` of the new policy if that makes such entries. */
  #valueOf(calls: readonly RequestCalls[], wanted: string): string | undefined {
    for (const { domain, start } of calls) {
      const policy = this.#options.after.domains.get(domain);
      const isDerived = policy?.steps.some(({ entry }) => entry === wanted) === true;
      for (const { entries: sent } of start) {
        const derived = isDerived ? policy.derived(sent) : sent;
        for (const { key, value } of derived === EXCEEDED ? sent : derived) {
          if (key === wanted) return value;
          if (this.keys.size < MAX_KEYS) this.keys.add(key);
        }
      }
    }
    return undefined;
  }

  /** Counts the requests that no request from `startMicros` on can make uncertain. */
  #settle(startMicros: number): void {
    const unsettled = this.#unsettled;
    let count = 0;
    while (count < unsettled.length && (unsettled[count] as Decided).times.endMicros <= startMicros) count++;
    if (count === 0) return;
    for (let at = 0; at < count; at++) this.#count(unsettled[at] as Decided, startMicros);
    unsettled.splice(0, count);
  }

  #count({ loggedMicros, times: { startMicros }, before, after, values }: Decided, nowMicros: number): void {
    after.settle(nowMicros);
    before.settle(nowMicros);
    this.#options.onVerdict?.(after);
    this.#warmUntilMicros ??= startMicros + this.#options.warmMicros;
    if (startMicros >= this.#warmUntilMicros) {
      this.firstMicros = Math.min(this.firstMicros ?? loggedMicros, loggedMicros);
      if (loggedMicros > this.lastMicros) this.lastMicros = loggedMicros;
      this.tally.add(loggedMicros, after.sameAs === undefined ? before : after, after, values);
    }
    let isOwn = true;
    for (const limit of after.limits) {
      limit.open?.settle();
      if (limit.open === after.open) isOwn = false;
    }
    if (isOwn) after.open?.settle();
  }

  /** Number of times that the clock of the log was set back. */
  get clockSteps(): number {
    return this.#time.steps;
  }

  /** Counts the remaining requests after the last one. */
  finish(): void {
    this.#settle(Number.POSITIVE_INFINITY);
    for (const bucket of this.after.buckets.all()) bucket.closeVerdicts();
  }
}
