import { RequestDecoder } from '../codec/decode-request.js';
import { CODE, type Descriptor, type RateLimitRequest, type RateLimitResponse } from '../codec/messages.js';
import type { BucketStore, LocalStore } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { MatchWork } from '../policy/match-work.js';
import type { RuleMetrics } from '../policy/rule.js';
import type { AnswerOptions } from '../service/answer/answer-options.js';
import type {
  BucketCounter,
  CountedSeries,
  DecisionCounts,
  DecisionObserver,
} from '../service/decision-observer.js';
import { Refusal } from '../service/refusal.js';
import { ShouldRateLimit } from '../service/should-rate-limit.js';
import type { LoggedCall } from './log-request.js';
import { type RuleRow, Verdict } from './tally.js';

/** The clock of a replay: the time of the log. Both clocks are equal, and never step back. */
export class LogClock implements Clock {
  #micros = 0;

  /** Moves the clock to `micros`. An earlier time leaves it unchanged. */
  advance(micros: number): void {
    if (micros > this.#micros) this.#micros = micros;
  }

  monotonicMicros(): number {
    return this.#micros;
  }

  wallMicros(): number {
    return this.#micros;
  }
}

/** The step of a sequence with evenly distributed values from 0 to 1: the fraction of the golden ratio. */
const GOLDEN_STEP = 0.618033988749895;
/**
 * Maximum number of ids of a decision log for which a policy remembers its own hold token. Ends of older holds are then
 * unknown, and these holds expire.
 */
const MAX_TOKENS = 500_000;

const nothing = (): void => {};
/** Draws every hit. */
const ALL_HITS = { take: (hits: number): number => hits };
const NO_SERIES: CountedSeries = [];

/** Finds the row of a rule in the report. */
export type RowOf = (domain: string, label: string) => RuleRow;

/** The settings of the server that a replay stands for. */
export interface ReplayedServer {
  readonly answers: AnswerOptions;
  /** MAX_LIMITS. */
  readonly maxLimits: number;
  /** MAX_MATCH_WORK. */
  readonly maxMatchWork: number;
  /** MAX_REGEX_VALUE_BYTES. */
  readonly maxRegexValueBytes: number;
  /** MEMORY_MAX_BUCKETS. */
  readonly maxBuckets: number;
  /** MEMORY_MAX_BYTES. */
  readonly maxBytes: number;
  /** Whether windows count the hits of denied requests. */
  readonly countDeniedHits: boolean;
}

/** Options of a {@link Decider}. */
export interface DeciderOptions {
  readonly clock: Clock;
  readonly store: BucketStore & LocalStore;
  readonly server: ReplayedServer;
  readonly rowOf: RowOf;
}

/** Decides the calls of a log with one policy, by the code that decides in a server, at the time of a clock. */
export class Decider {
  /** How the latest call was decided. */
  verdict = new Verdict();
  /** Token of the holds that the latest call placed. */
  token: string | undefined;
  readonly #service: ShouldRateLimit;
  readonly #holdNames: AnswerOptions['holdNames'];
  /** The tokens of this policy, by the ids of the same holds in the log. */
  readonly #tokens = new Map<string, string>();
  #share = 0;

  constructor(policySet: PolicySet, { clock, store, server, rowOf }: DeciderOptions) {
    const { answers, maxLimits, maxMatchWork, maxRegexValueBytes } = server;
    this.#holdNames = answers.holdNames;
    this.#service = new ShouldRateLimit({
      decoder: new RequestDecoder(),
      clock,
      store,
      local: store,
      policies: { current: () => policySet },
      observer: observerOf(() => this.verdict, rowOf),
      storeTimeoutMicros: Number.POSITIVE_INFINITY,
      maxLimits,
      matchWork: new MatchWork(maxMatchWork, maxRegexValueBytes),
      random: () => this.#share,
      answers,
    });
  }

  /** Decides a call. Returns a promise if the call is so large that it has to wait for its turn. */
  decide(call: LoggedCall): Promise<void> | undefined {
    this.verdict = new Verdict();
    this.token = undefined;
    // All policies draw the same number for a request, so that a policy that is compared with itself changes nothing.
    this.#share = (this.#share + GOLDEN_STEP) % 1;
    const request = call.holdEnds.length === 0 ? call.request : this.#withTokens(call);
    if (request.descriptors.length === 0) return undefined;
    return this.#send(request, (response) => {
      this.verdict.denied = response.overallCode === CODE.OVER_LIMIT;
      const token = response.dynamicMetadata?.[this.#holdNames.metadataKey];
      if (typeof token === 'string') this.#keep(token, call.holdIds);
    });
  }

  /** Decides the call at the end of a request. `token`: the holds that its start placed. */
  end(
    domain: string,
    token: string | undefined,
    hits: number | undefined,
    descriptors: readonly Descriptor[],
  ): Promise<void> | undefined {
    const all = token === undefined ? descriptors : [this.#endOf(token, hits), ...descriptors];
    if (all.length === 0) return undefined;
    this.verdict = new Verdict();
    return this.#send({ domain, descriptors: all, hitsAddend: 0 }, nothing);
  }

  #send(
    request: RateLimitRequest,
    answered: (response: RateLimitResponse) => void,
  ): Promise<void> | undefined {
    const reply = this.#service.decide(request);
    if (reply instanceof Promise) return reply.then((late) => this.#answer(late, answered));
    this.#answer(reply, answered);
    return undefined;
  }

  #answer(reply: RateLimitResponse | Refusal, answered: (response: RateLimitResponse) => void): void {
    if (reply instanceof Refusal) this.verdict.undecided = reply.message;
    else answered(reply);
  }

  #keep(token: string, ids: readonly string[]): void {
    this.token = token;
    for (const id of ids) this.#tokens.set(id, token);
    for (const id of this.#tokens.keys()) {
      if (this.#tokens.size <= MAX_TOKENS) break;
      this.#tokens.delete(id);
    }
  }

  /** Adds the ends of holds to the descriptors of a call. This policy has no token if it denied the start. */
  #withTokens({ request, holdEnds }: LoggedCall): RateLimitRequest {
    const ends: Descriptor[] = [];
    for (const { ids, used } of holdEnds) {
      const token = ids.map((id) => this.#tokens.get(id)).find((one) => one !== undefined);
      for (const id of ids) this.#tokens.delete(id);
      if (token !== undefined) ends.push(this.#endOf(token, used));
    }
    return { ...request, descriptors: [...ends, ...request.descriptors] };
  }

  #endOf(token: string, used: number | undefined): Descriptor {
    const entries = [{ key: this.#holdNames.entry, value: token }];
    return { entries, limit: undefined, hitsAddend: used, isNegativeHits: false };
  }
}

/** Returns an observer that collects the limits that a call meets in the verdict of the latest call. */
function observerOf(verdict: () => Verdict, rowOf: RowOf): DecisionObserver {
  const counterOf = (domain: string, label: string): RuleMetrics => {
    const row = rowOf(domain, label);
    const decided = (denied: boolean, over: boolean) => verdict().uses.push({ row, denied, over });
    return { owner: counts, countReference: nothing, countDecision: decided };
  };
  const noteEntries: BucketCounter['count'] = (_measure, _hits, _policy, { entries }) => {
    verdict().entries ??= entries;
  };
  const counts: DecisionCounts = {
    counterOf,
    softLimitExceeded: nothing,
    spilled: nothing,
    uncollected: nothing,
    unmatched: (_domain, entries) => {
      verdict().entries ??= entries;
      return NO_SERIES;
    },
    unknownDomain: (domain) => {
      verdict().unknownDomain = domain;
      return NO_SERIES;
    },
    requestGivenUp: (_domain, why) => {
      verdict().undecided = why;
    },
    storeError: nothing,
    storeFailed: nothing,
    holds: { placed: nothing, settled: nothing, released: nothing, unsettled: nothing, lost: nothing },
    reference: { globalShadow: nothing, failed: nothing },
  };
  return {
    counts,
    warnings: {
      unlimited: { unmatched: nothing, unknownDomain: nothing },
      charges: { asked: nothing },
      neverPasses: nothing,
      givenUp: nothing,
      logsDecisions: false,
      logDecision: nothing,
    },
    buckets: { samplers: { used: ALL_HITS, denied: ALL_HITS }, count: noteEntries },
  };
}
