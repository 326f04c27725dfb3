import {
  CODE,
  type Descriptor,
  type RateLimitRequest,
  type RateLimitResponse,
} from '../../codec/messages.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { type Due, DueHeap } from '../../runtime/due-heap.js';
import type { HoldNames } from '../../service/answer/answer-options.js';
import { Refusal } from '../../service/refusal.js';
import type { LoggedDescriptor } from '../envoy/rate-limit.js';
import type { RequestCalls } from '../envoy/route-table.js';
import { Decider } from './decider.js';
import { LaterUse } from './later-use.js';
import { ReplayClock } from './replay-clock.js';
import { TrackedBuckets } from './tracked-buckets.js';
import { MetChain, type MetLimit, RequestVerdict } from './verdict.js';

/** When a logged request was decided, and when it ended, in microseconds since 1970. */
export interface RequestTimes {
  /** The request was decided from {@link startMicros} up to, but not including, {@link endMicros}. */
  readonly startMicros: number;
  readonly endMicros: number;
  /** When its stream was done. */
  readonly doneMicros: number;
}

/** The answer to a call. */
export type CallAnswer = RateLimitResponse | Refusal;

/** Yields answers that are not there yet, and gets them. Nearly all answers are there at once. */
export type Deciding<Result> = Generator<Promise<CallAnswer>, Result, CallAnswer>;

/** A call that Envoy makes when a stream is done. */
interface EndCall extends Due {
  readonly request: RateLimitRequest;
  /** The verdict of its request. */
  readonly verdict: RequestVerdict;
}

/** Decides the requests of a log with one policy. Requests must come in the order of their start. */
export class PolicyReplay {
  readonly buckets = new TrackedBuckets();
  readonly laterUse = new LaterUse();
  /** Number of calls that a server would have refused, by its message. */
  readonly refused = new Map<string, number>();
  readonly #clock = new ReplayClock();
  readonly #decider: Decider;
  readonly #holdNames: HoldNames;
  readonly #ends = new DueHeap<EndCall>();

  constructor(policySet: PolicySet, holdNames: HoldNames) {
    this.#decider = new Decider(policySet, { clock: this.#clock, holdNames });
    this.#holdNames = holdNames;
  }

  /** Number of buckets that were dropped because there were too many. */
  get evictions(): number {
    return this.#decider.evictions;
  }

  /**
   * Decides a request. `wasDenied`: whether the log says that it was denied. The log does not tell how a request would
   * have ended that is denied only now, so such a request has no calls at its end.
   */
  *decide(calls: readonly RequestCalls[], times: RequestTimes, wasDenied: boolean): Deciding<RequestVerdict> {
    while ((this.#ends.first?.dueAt ?? Number.POSITIVE_INFINITY) <= times.startMicros) yield* this.#end();
    this.laterUse.changeUntil(times.startMicros);
    this.#clock.advance(times.startMicros);
    const verdict = new RequestVerdict();
    for (const { domain, start, end } of calls) {
      let answer: RateLimitResponse | undefined;
      if (start.length > 0) {
        const request = { domain, descriptors: start, hitsAddend: 0 };
        const met = verdict.limits.length;
        const answered = this.#decider.decide(request, verdict);
        answer = this.#answerOf(answered instanceof Promise ? yield answered : answered);
        verdict.denied = answer?.overallCode === CODE.OVER_LIMIT;
        this.#track(verdict, met, times, end);
      }
      if (end.length > 0) {
        if (!verdict.denied || wasDenied) this.#endLater(domain, end, times.doneMicros, answer, verdict);
        else yield* this.#chargeLater(domain, end, times.doneMicros, verdict);
      }
      // Envoy makes no call for the filters after one that denied the request.
      if (verdict.denied) break;
    }
    return verdict;
  }

  /** Returns the answer, or counts the refusal. */
  #answerOf(answer: CallAnswer): RateLimitResponse | undefined {
    if (!(answer instanceof Refusal)) return answer;
    this.refused.set(answer.message, (this.refused.get(answer.message) ?? 0) + 1);
    return undefined;
  }

  /** Tracks the limits of a verdict from the index `first` on. `end`: the descriptors at its end. */
  #track(
    verdict: RequestVerdict,
    first: number,
    { startMicros, endMicros, doneMicros }: RequestTimes,
    end: readonly LoggedDescriptor[],
  ): void {
    const { limits, denied } = verdict;
    for (let at = first; at < limits.length; at++) {
      const limit = limits[at] as MetLimit;
      limit.request = verdict;
      if (limit instanceof MetChain) {
        this.#trackChain(limit, !denied, startMicros, endMicros);
        continue;
      }
      const bucket = this.buckets.of(limit);
      limit.rule = bucket?.rule ?? this.buckets.ruleOf(limit);
      // Without a bucket, an earlier limit of the request that becomes open does not disturb this one.
      limit.bucket = bucket;
      if (bucket !== undefined) {
        bucket.record(limit, !denied, startMicros, endMicros);
        this.laterUse.addHold(bucket, limit, startMicros, doneMicros, end);
      }
      if (limits.length > 1) limit.disturbIfOthersAreOpen();
    }
  }

  /** Tracks the limits of a chain. Only the last one can lack capacity, because the others never deny a request. */
  #trackChain(chain: MetChain, isAllowed: boolean, startMicros: number, endMicros: number): void {
    const { members } = chain;
    for (const member of members) {
      member.request = chain.request;
      member.rule = this.buckets.ruleOf(member);
      if (member.take === chain.take) chain.rule = member.rule;
    }
    const last = members.at(-1) as MetLimit;
    chain.lastRule = last.rule;
    for (const member of members) {
      const bucket = this.buckets.of(member);
      member.bucket = bucket;
      if (bucket === undefined) continue;
      if (member !== last) bucket.knowsUse = false;
      bucket.record(member, isAllowed, startMicros, endMicros);
      member.disturbIfOthersAreOpen();
      if (member !== last) continue;
      // Whichever limit pays, the caller is the same.
      chain.bucket = bucket;
      chain.wantedCapacity = member.wantedCapacity;
      bucket.wasDenied ||= chain.denied;
    }
  }

  #endLater(
    domain: string,
    end: readonly LoggedDescriptor[],
    dueAt: number,
    answer: RateLimitResponse | undefined,
    verdict: RequestVerdict,
  ): void {
    const token = answer?.dynamicMetadata?.[this.#holdNames.metadataKey];
    const descriptors = end.flatMap((descriptor) => withToken(descriptor, token) ?? []);
    if (descriptors.length === 0) return;
    this.#ends.add({ request: { domain, descriptors, hitsAddend: 0 }, verdict, dueAt, heapIndex: -1 });
  }

  /** Adds the charges of a request to the use of its buckets, although it is denied now. */
  *#chargeLater(
    domain: string,
    end: readonly LoggedDescriptor[],
    dueAt: number,
    verdict: RequestVerdict,
  ): Deciding<void> {
    // With `pair: oldest`, a call with 0 hits starts a request.
    if (verdict.limits.some(({ take }) => take.rule?.hold?.pair === 'oldest')) return;
    for (const { holdEntry, hitsAddend = 1, ...descriptor } of end) {
      if (holdEntry !== undefined) continue;
      // A call with 0 hits finds the buckets without a change.
      const charged = new RequestVerdict();
      const request = { domain, descriptors: [{ ...descriptor, hitsAddend: 0 }], hitsAddend: 0 };
      const answered = this.#decider.decide(request, charged);
      if (answered instanceof Promise) yield answered;
      for (const limit of charged.limits) {
        const bucket = this.buckets.known(limit);
        if (bucket !== undefined && bucket.rate.kind !== 'concurrency')
          this.laterUse.add(bucket, descriptor.isNegativeHits ? -hitsAddend : hitsAddend, dueAt);
      }
    }
  }

  /** Makes the earliest call of those at the end of requests. */
  *#end(): Deciding<void> {
    const { first } = this.#ends;
    if (first === undefined) return;
    this.#ends.remove(first);
    this.#clock.advance(first.dueAt);
    const ended = new RequestVerdict();
    const answered = this.#decider.decide(first.request, ended);
    this.#answerOf(answered instanceof Promise ? yield answered : answered);
    for (const limit of ended.takes) {
      limit.bucket = first.verdict.hasDiverged ? this.buckets.of(limit) : this.buckets.known(limit);
      const { rate, hits, refund } = limit.take;
      const isIdle = limit.chain !== undefined && limit.chain.take !== limit.take;
      if (rate.kind === 'concurrency' || isIdle) continue;
      limit.bucket?.recordEnd(hits, refund, first.dueAt);
    }
    if (first.verdict.hasDiverged) ended.diverge();
  }
}

/** Returns the descriptor with the hold token in its place. Without a token, Envoy does not send such a descriptor. */
function withToken({ holdEntry, ...descriptor }: LoggedDescriptor, token: unknown): Descriptor | undefined {
  if (holdEntry === undefined) return descriptor;
  if (token === undefined) return undefined;
  const entries = descriptor.entries.map((entry, index) =>
    index === holdEntry ? { key: entry.key, value: String(token) } : entry,
  );
  return { ...descriptor, entries };
}
