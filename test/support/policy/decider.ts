import { createClientCodec } from '../../../src/codec/client-codec.js';
import { RequestDecoder } from '../../../src/codec/decode-request.js';
import type { Descriptor, RateLimitResponse, RequestBounds } from '../../../src/codec/messages.js';
import type { BucketStore } from '../../../src/limiter/bucket-store.js';
import type { PolicySet } from '../../../src/policy/compiled-policy.js';
import {
  DEFAULT_MAX_MATCH_WORK,
  DEFAULT_MAX_REGEX_VALUE_BYTES,
  MatchWork,
} from '../../../src/policy/match-work.js';
import type { RuleMetrics } from '../../../src/policy/rule.js';
import type { AnswerOptions } from '../../../src/service/answer/answer-options.js';
import type {
  BucketCounter,
  CountedSeries,
  DecisionCounts,
  DecisionObserver,
  DecisionWarnings,
  HoldCounts,
} from '../../../src/service/decision-observer.js';
import type { DecisionLine } from '../../../src/service/record/decision-line.js';
import type { DecisionLog } from '../../../src/service/record/decision-record.js';
import { Refusal } from '../../../src/service/refusal.js';
import { ShouldRateLimit, type ShouldRateLimitOptions } from '../../../src/service/should-rate-limit.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../clock/fake-clock.js';
import { createWireCodec } from '../codec/wire-codec.js';
import { MEMORY } from '../limiter/store-options.js';
import { PLAIN_ANSWERS } from './plain-answers.js';
import { entries, policyOf } from './policies.js';

/** Both sides of the codec, created once because the client's side reads its definition from a file. */
const CODEC = { ...createClientCodec(), ...createWireCodec() };

/** Counts of one descriptor for the reference's statistics; `used` is undefined if no limit decided. */
export interface Counted {
  readonly stat: string;
  readonly fromCaller: boolean;
  readonly hits: number;
  readonly used: number | undefined;
  readonly overLimit: boolean;
  readonly shadowed: boolean;
}

/** Records each call as one word, and the counts in {@link descriptors}. */
class RecordingObserver implements DecisionObserver, DecisionCounts, DecisionWarnings {
  readonly counts = this;
  readonly reference = this;
  readonly warnings = this;
  readonly told: string[] = [];
  readonly lines: DecisionLine[] = [];
  /** Arguments of the calls about rules with `allow_debt`. */
  readonly debts: string[] = [];
  readonly descriptors: Counted[] = [];
  buckets: BucketCounter | undefined;
  debug = false;

  neverPasses(domain: string, rule: string, hits: number, limit: number): void {
    this.told.push(`${domain} ${rule} never ${hits} of ${limit}`);
  }
  unknownDomain(domain: string): CountedSeries {
    this.told.push(`unknown ${domain}`);
    return [];
  }
  unmatched(domain: string, all: readonly { readonly key: string }[]): CountedSeries {
    this.told.push(`unmatched ${domain} ${all.map(({ key }) => key).join(',')} as meant`);
    return [];
  }
  /** Receives what was counted just before. */
  readonly unlimited = {
    unmatched: () => this.told.push((this.told.pop() as string).replace(' as meant', '')),
    unknownDomain: () => {},
  };
  counterOf(domain: string, rule: string, chosen: string, fromCaller: boolean): RuleMetrics {
    return {
      owner: this,
      countDecision: (overLimit, would) =>
        this.told.push(`${domain} ${rule} ${overLimit ? 'OVER_LIMIT' : 'OK'}${would ? ' would' : ''}`),
      countReference: (stat, { hits }, outcome, shadowed) =>
        this.descriptors.push({
          stat: fromCaller ? chosen : stat,
          fromCaller,
          hits,
          used: outcome?.used,
          overLimit: outcome?.overLimit ?? false,
          shadowed,
        }),
    };
  }
  softLimitExceeded(domain: string, rule: string, marked: boolean): void {
    this.told.push(`${domain} ${rule} passed over${marked ? ' and marked' : ''}`);
  }
  spilled(domain: string, rule: string): void {
    this.told.push(`${domain} ${rule} spilled`);
  }
  readonly charges = {
    asked: (domain: string, rule: string, hits: number, refund: boolean) =>
      this.debts.push(`${domain} ${rule} ${refund ? '-' : ''}${hits}`),
  };
  uncollected(domain: string, rule: string, hits: number): void {
    this.told.push(`${domain} ${rule} forgiven ${hits}`);
  }
  readonly holds: HoldCounts = {
    placed: (domain, rule, hits) => this.told.push(`${domain} ${rule} placed ${hits}`),
    settled: (domain, rule, held, used) =>
      this.told.push(`${domain} ${rule} settled ${held} used ${used ?? 'unknown'}`),
    released: (domain, rule, hits) => this.told.push(`${domain} ${rule} released ${hits}`),
    unsettled: (domain, kind) => this.told.push(`${domain} ${kind} token`),
    lost: (domain, rule) => this.told.push(`${domain} ${rule} settlement lost`),
  };
  requestGivenUp(): void {}
  givenUp(domain: string, why: string, denied: boolean): void {
    this.told.push(`${domain} ${why}${denied ? ' denied' : ''}`);
  }
  globalShadow(): void {
    this.told.push('global shadow');
  }
  failed(cause: string): void {
    this.told.push(`failed for ${cause}`);
  }
  storeError(reason: string): void {
    this.told.push(`store ${reason}`);
  }
  storeFailed(policy: string): void {
    this.told.push(`failed ${policy}`);
  }
  get logsDecisions(): boolean {
    return this.debug;
  }
  logDecision(line: DecisionLine): void {
    this.lines.push(line);
  }
}

export interface DeciderOptions {
  readonly store?: BucketStore;
  readonly bounds?: RequestBounds;
  readonly maxLimits?: number;
  readonly matchWork?: MatchWork;
  readonly loaded?: boolean;
  readonly answers?: Partial<AnswerOptions>;
  readonly decisionLog?: DecisionLog;
  /** Random numbers for `enforce_percent`; default: Math.random. */
  readonly random?: () => number;
}

/** The service without a transport, on a policy given as text, with a fixed clock and buckets in memory. */
export class Decider {
  readonly clock = new FakeClock();
  readonly observer = new RecordingObserver();
  readonly codec = CODEC;
  readonly options: ShouldRateLimitOptions;
  readonly service: ShouldRateLimit;
  #policySet: PolicySet;

  constructor(
    policy: string,
    {
      store,
      bounds,
      maxLimits = 256,
      matchWork = new MatchWork(DEFAULT_MAX_MATCH_WORK, DEFAULT_MAX_REGEX_VALUE_BYTES),
      loaded = true,
      answers,
      random,
      decisionLog,
    }: DeciderOptions = {},
  ) {
    this.#policySet = setOf(policy);
    const memory = new MemoryStore({ ...MEMORY, clock: this.clock });
    this.options = {
      decoder: new RequestDecoder(bounds),
      clock: this.clock,
      store: store ?? memory,
      local: memory,
      policies: { current: () => (loaded ? this.#policySet : undefined) },
      observer: this.observer,
      storeTimeoutMicros: 2_000_000,
      maxLimits,
      matchWork,
      answers: { ...PLAIN_ANSWERS, ...answers },
      ...(random !== undefined && { random }),
      decisionLog,
    };
    this.service = new ShouldRateLimit(this.options);
  }

  /** Replaces the policy, as a reload does. */
  reload(policy: string): void {
    this.#policySet = setOf(policy);
  }

  /** Decides one request with the given `hitsAddend`. */
  ask(descriptors: readonly Descriptor[], hitsAddend = 0, domain = 'd'): RateLimitResponse | Refusal {
    // Calls may share a decoded request, so that a change of it would reach other calls.
    const decided = this.service.decide(frozen({ domain, descriptors, hitsAddend }));
    if (decided instanceof Promise) throw new Error('decided late');
    return decided;
  }

  /** Decides a large request, which waits for its turn, and throws if it is refused. */
  async answerLarge(descriptors: readonly Descriptor[], domain = 'd'): Promise<RateLimitResponse> {
    const decided = await this.service.decide({ domain, descriptors, hitsAddend: 0 });
    if (decided instanceof Refusal) throw new Error(`refused: ${decided.message}`);
    return decided;
  }

  /** Decides one request, and throws if it is refused. */
  answer(descriptors: readonly Descriptor[], hitsAddend = 0, domain = 'd'): RateLimitResponse {
    const decided = this.ask(descriptors, hitsAddend, domain);
    if (decided instanceof Refusal) throw new Error(`refused: ${decided.message}`);
    return decided;
  }
}

function setOf(policy: string): PolicySet {
  const compiled = policyOf(policy);
  return { domains: new Map([[compiled.domain, compiled]]), version: 'test' };
}

/** Returns a descriptor of `key=value` strings. */
export function descriptor(texts: readonly string[], more: Partial<Descriptor> = {}): Descriptor {
  return {
    entries: entries(...texts),
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
    ...more,
  };
}

/** Returns the headers as an object; throws for a repeated header. */
export function headers(response: RateLimitResponse): Record<string, string> {
  const result: Record<string, string> = {};
  for (const { key, value } of response.responseHeadersToAdd) {
    if (key in result) throw new Error(`${key} is there twice`);
    result[key] = String(value);
  }
  return result;
}

/** Freezes a value and everything in it, so that a change throws. */
function frozen<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) frozen(part);
  }
  return value;
}
