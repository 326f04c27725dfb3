import { BucketAdmin } from '../../../src/admin/buckets/bucket-admin.js';
import type { BucketAnswer, BucketFailure, BucketQuestion } from '../../../src/admin/buckets/messages.js';
import { type BucketStore, StorageError, type Take } from '../../../src/limiter/bucket-store.js';
import type { Entry } from '../../../src/limiter/entry.js';
import type { CompiledPolicy } from '../../../src/policy/compiled-policy.js';
import { MatchWork } from '../../../src/policy/match-work.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type { Logger } from '../../../src/telemetry/logger.js';
import { FakeClock } from '../clock/fake-clock.js';
import { newHoldId } from '../limiter/hold-items.js';
import { PLAIN_ANSWERS } from '../policy/plain-answers.js';
import { policyOf } from '../policy/policies.js';

/** Parses a descriptor such as `tenant=acme,user=bob` into entries. */
export function entriesOf(text: string): readonly Entry[] {
  return text.split(',').map((pair) => {
    const at = pair.indexOf('=');
    return { key: pair.slice(0, at), value: pair.slice(at + 1) };
  });
}

/** A BucketAdmin on buckets in memory, with a fixed clock. */
export class AdminBench {
  readonly clock = new FakeClock();
  readonly memory = new MemoryStore({
    clock: this.clock,
    maxBuckets: 100_000,
    maxBytes: 100_000_000,
    countDeniedHits: true,
  });
  readonly admin: BucketAdmin;
  /** Lines of the log: fields and message. */
  readonly logged: { readonly fields: Record<string, unknown>; readonly message: string }[] = [];
  /** `action result` of each counted call. */
  readonly counted: string[] = [];
  /** `domain rule hits` of each released hold. */
  readonly released: string[] = [];
  /** Keys of the buckets that other processes were told about. */
  announced = 0;
  /** Error of announcements; undefined: other processes are told. */
  unannounced: StorageError | undefined;
  /** Error that the store returns instead of deciding; undefined: the store decides. */
  broken: StorageError | undefined;
  /** Number of calls after which the store fails. */
  breaksAfter = Number.POSITIVE_INFINITY;
  /** Duration of each call of the store. */
  callMicros = 0;
  policies: Map<string, CompiledPolicy>;

  /** Number of tokens of each bucket that the process has leased. */
  leased: number | undefined = 0;

  /** `redis`: whether answers contain Redis keys. */
  constructor(yaml: string, redis = false) {
    this.policies = policiesOf(yaml);
    const buckets: BucketStore = {
      take: (takes) => {
        if (this.breaksAfter-- <= 0) return new StorageError('timeout', 'no answer');
        this.clock.advance(this.callMicros);
        return this.broken ?? this.memory.take(takes);
      },
      close: async () => {},
    };
    const log = (fields: Record<string, unknown>, message: string): unknown =>
      this.logged.push({ fields, message });
    this.admin = new BucketAdmin({
      policies: () => ({ domains: this.policies, version: '1' }),
      store: {
        name: redis ? 'Redis 127.0.0.1:6379' : 'memory',
        buckets,
        holds: {
          listHolds: async (bucket, most) => this.broken ?? this.memory.listHolds(bucket, most),
          hasHold: async (bucket, hold) => this.broken ?? this.memory.hasHold(bucket, hold),
        },
        announceFilled: async () => {
          this.announced++;
          return this.unannounced;
        },
        leasedTokens: () => this.leased,
        timeoutMicros: 1_000_000,
      },
      clock: this.clock,
      answers: PLAIN_ANSWERS,
      maxLimits: 1000,
      matchWork: new MatchWork(),
      keyPrefix: redis ? 'weir:1:' : undefined,
      log: { info: log, warn: log, error: log } as unknown as Logger,
      counts: { released: (domain, rule, hits) => this.released.push(`${domain} ${rule} ${hits}`) },
      count: (action, result) => this.counted.push(`${action} ${result}`),
    });
  }

  /** Returns the answer to a valid question. */
  async ask(question: BucketQuestion): Promise<BucketAnswer> {
    const { status, body } = await this.admin.answer(question, {
      by: 'ops',
      peer: '10.0.0.7',
      right: 'write',
    });
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
    return body as BucketAnswer;
  }

  /**
   * Returns the status and message of a question that fails, followed by `[maybe done]` if the change may have
   * happened.
   */
  async refused(question: unknown): Promise<string> {
    const { status, body } = await this.admin.answer(question, {
      by: 'ops',
      peer: '10.0.0.7',
      right: 'write',
    });
    const { error, maybe_done: maybeDone = false } = body as BucketFailure;
    return `${status} ${error}${maybeDone ? ' [maybe done]' : ''}`;
  }

  /** Takes hits as a request with this descriptor does. Returns the items. */
  take(entries: string, hits: number, domain = 'd'): readonly Take[] {
    const match = (this.policies.get(domain) as CompiledPolicy).match(entriesOf(entries));
    const takes = match.rules.flatMap(({ rate, hold }, i): Take | [] =>
      rate === undefined
        ? []
        : {
            key: match.keys[i] as string,
            hashTagLength: match.hashTagLength,
            rate,
            hits,
            refund: false,
            enforcement: 'enforce' as const,
            ...(hold && {
              holds: {
                id: newHoldId(),
                lifetimeMillis: hold.expiresAfterMillis,
                freesUnknown: hold.unknown === 'free',
              },
            }),
          },
    );
    this.memory.take(takes);
    return takes;
  }
}

/** Returns the policies of a text that contains one or more files, separated by `---`. */
export function policiesOf(yaml: string): Map<string, CompiledPolicy> {
  return new Map(yaml.split('\n---\n').map((text) => [policyOf(text).domain, policyOf(text)]));
}
