import type { RateLimitRequest, RateLimitResponse } from '../../codec/messages.js';
import { createWireCodec } from '../../codec/wire-codec.js';
import { MAX_UINT32 } from '../../limiter/rate.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { type HoldNames, PLAIN_ANSWERS } from '../../service/answer/answer-options.js';
import type { Refusal } from '../../service/refusal.js';
import { ShouldRateLimit } from '../../service/should-rate-limit.js';
import { MemoryStore } from '../../storage/memory/memory-store.js';
import { LimitCollector } from './limit-collector.js';
import type { ReplayClock } from './replay-clock.js';
import type { RequestVerdict } from './verdict.js';

/** Maximum number of buckets of a policy, and their maximum estimated bytes. */
export const MAX_BUCKETS = 4_000_000;
const MAX_BYTES = 1024 ** 3;
/** The step of a sequence with evenly distributed values from 0 to 1: the fraction of the golden ratio. */
const GOLDEN_STEP = 0.618033988749895;

/** Options of a {@link Decider}. */
export interface DeciderOptions {
  readonly clock: ReplayClock;
  readonly holdNames: HoldNames;
}

/** Decides requests with a policy as a server does, with its own buckets in memory, at the time of a clock. */
export class Decider {
  readonly #collector = new LimitCollector();
  readonly #service: ShouldRateLimit;
  readonly #store: MemoryStore;
  #share = 0;

  constructor(policySet: PolicySet, { clock, holdNames }: DeciderOptions) {
    this.#store = new MemoryStore({
      clock,
      maxBuckets: MAX_BUCKETS,
      maxBytes: MAX_BYTES,
      countDeniedHits: true,
    });
    this.#service = new ShouldRateLimit({
      codec: createWireCodec(),
      clock,
      store: this.#store,
      local: this.#store,
      policies: () => policySet,
      observer: this.#collector,
      storeTimeoutMicros: Number.POSITIVE_INFINITY,
      maxDescriptors: MAX_UINT32,
      maxLimits: MAX_UINT32,
      random: this.#nextShare,
      answers: { ...PLAIN_ANSWERS, holdNames },
    });
  }

  /** Decides a request, one at a time. The limits that it meets are added to `verdict`. */
  decide(
    request: RateLimitRequest,
    verdict: RequestVerdict,
  ): RateLimitResponse | Refusal | Promise<RateLimitResponse | Refusal> {
    this.#collector.verdict = verdict;
    this.#collector.domain = request.domain;
    return this.#service.decide(request);
  }

  /** Number of buckets that were dropped because there were too many. */
  get evictions(): number {
    return this.#store.evictions;
  }

  /** Returns numbers that are below a percentage in exactly that share of the cases, so that replays are repeatable. */
  readonly #nextShare = (): number => {
    this.#share = (this.#share + GOLDEN_STEP) % 1;
    return this.#share;
  };
}
