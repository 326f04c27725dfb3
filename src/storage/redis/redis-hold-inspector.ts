import { StorageError } from '../../limiter/bucket-store.js';
import type { HoldValues } from '../../limiter/holds/hold.js';
import {
  type HeldBucket,
  type HoldInspector,
  type ListedHolds,
  mergedHolds,
  type StoredHold,
  storedCount,
} from '../../limiter/holds/hold-inspector.js';
import { readAsset } from '../../runtime/assets.js';
import type { RedisBackend } from './redis-backend.js';
import { holdsKey, redisKey } from './redis-key.js';
import { encodeId } from './take-script.js';

/** Line of the reply for a hold; see holds.lua. */
const HOLD = /^([0-9a-f]{24}) (\d+) (\d+|-) (\d+) (\d+) (\d+)$/;

/** Finds the holds in Redis. Each call runs a script that reads a bounded number of holds. */
export class RedisHoldInspector implements HoldInspector {
  readonly #redisOf: (bucket: HeldBucket) => Pick<RedisBackend, 'runScript'>;
  readonly #keyPrefix: string | undefined;
  readonly #script = `${readAsset('src/storage/redis/script/holds.lua')}return listHolds(KEYS[1], ARGV)`;

  /** `redisOf` returns the Redis of a bucket. */
  constructor(redisOf: (bucket: HeldBucket) => Pick<RedisBackend, 'runScript'>, keyPrefix?: string) {
    this.#redisOf = redisOf;
    this.#keyPrefix = keyPrefix;
  }

  async listHolds(bucket: HeldBucket, most: number): Promise<ListedHolds | StorageError> {
    const sets: ListedHolds[] = [];
    for (const frees of setsOf(bucket)) {
      const listed = await this.#listSet(bucket, frees, most);
      if (listed instanceof StorageError) return listed;
      sets.push(listed);
    }
    return mergedHolds(sets, bucket, most);
  }

  async hasHold(bucket: HeldBucket, hold: HoldValues): Promise<boolean | StorageError> {
    const unit = bucket.rate.kind === 'concurrency' ? 0 : 1;
    const { amount, lifetimeMillis, fullAtMicros, refillMicros = 0 } = hold;
    const values = [unit, amount, lifetimeMillis, fullAtMicros, refillMicros].map(String);
    for (const frees of setsOf(bucket)) {
      const answer = await this.#run(bucket, frees, ['0', encodeId(hold.id), ...values]);
      if (answer instanceof StorageError) return answer;
      if (!/^[01]$/.test(answer)) return unknownAnswer();
      if (answer === '1') return true;
    }
    return false;
  }

  async #listSet(bucket: HeldBucket, frees: boolean, most: number): Promise<ListedHolds | StorageError> {
    const answer = await this.#run(bucket, frees, [String(most)]);
    if (answer instanceof StorageError) return answer;
    const [count = '', ...lines] = answer.split('\n');
    const holds = lines.flatMap((line) => readHold(line, frees) ?? []);
    if (!/^\d+$/.test(count) || holds.length < lines.length) return unknownAnswer();
    return { holds, more: Math.max(0, Number(count) - storedCount(holds, bucket.rate)) };
  }

  #run(bucket: HeldBucket, frees: boolean, args: string[]): Promise<string | StorageError> {
    const { key, hashTagLength, rate } = bucket;
    const set = rate.kind === 'concurrency' ? key : holdsKey(key, frees);
    return this.#redisOf(bucket).runScript({
      script: this.#script,
      key: redisKey({ key: set, hashTagLength }, this.#keyPrefix),
      args,
    });
  }
}

/** Returns whether the holds of each set of a bucket free their hits. */
function setsOf({ rate }: HeldBucket): readonly boolean[] {
  return rate.kind === 'concurrency' ? [false] : [false, true];
}

function unknownAnswer(): StorageError {
  return new StorageError('rejected', 'the script that lists holds returned an answer in an unknown format');
}

function readHold(line: string, freesUnknown: boolean): StoredHold | undefined {
  const [, id, amount, lifetime, fullAtMicros, refillMicros, remainingMicros] = HOLD.exec(line) ?? [];
  if (id === undefined) return undefined;
  return {
    id,
    amount: Number(amount),
    lifetimeMillis: lifetime === '-' ? undefined : Number(lifetime),
    fullAtMicros: Number(fullAtMicros),
    refillMicros: Number(refillMicros),
    freesUnknown,
    remainingMicros: Number(remainingMicros),
  };
}
