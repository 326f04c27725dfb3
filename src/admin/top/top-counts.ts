import type { PolicyProvider } from '../../config/policy-provider.js';
import type { Clock } from '../../limiter/clock.js';
import type { Entry } from '../../limiter/entry.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { overrideOfKey } from '../../policy/names/bucket-key.js';
import { planOfCustomer } from '../../policy/plans/plan-nodes.js';
import { dependsOnRow } from '../../policy/plans/plan-rules.js';
import type { Match } from '../../policy/policy.js';
import { NO_SECRETS, redactEntries, sha256Hex } from '../../policy/redact.js';
import type { Rule } from '../../policy/rule.js';
import type { Closers } from '../../runtime/closers.js';
import type { BucketCounter, CountedTake } from '../../service/decision-observer.js';
import { type BucketDescription, TopBuckets, type TopMeasure } from '../../telemetry/top/top-buckets.js';
import type { SecretKeyLookup } from './top-answer.js';

/** Maximum number of entries of a bucket that are stored. */
export const MAX_TOP_ENTRIES = 16;
/** Maximum number of characters of one stored string, and of all strings of a bucket's entries. */
const MAX_TOP_TEXT = 100;
export const MAX_TOP_TEXTS = 300;
/** Longer names of buckets are stored as digests. */
const MAX_KEY = 200;

/** Copies a string, because a slice of a long string would keep the whole string in memory. */
function copyText(text: string): string {
  return Buffer.from(text).toString();
}

function cut(text: string, most: number): string {
  return copyText(text.length <= most ? text : `${text.slice(0, Math.max(most - 1, 0))}…`);
}

/** Returns entries for storage, with secrets redacted and long strings and lists shortened. */
function keptEntries(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  let room = MAX_TOP_TEXTS;
  const kept = (text: string): string => {
    const shown = cut(text, Math.min(MAX_TOP_TEXT, room));
    room = Math.max(room - shown.length, 0);
    return shown;
  };
  const more = entries.length - MAX_TOP_ENTRIES;
  const first = more > 0 ? entries.slice(0, MAX_TOP_ENTRIES) : entries;
  const shown = redactEntries(first, secretKeys).map(({ key, value }) => ({
    key: kept(key),
    value: kept(value),
  }));
  return more > 0 ? [...shown, { key: '…', value: `and ${more} more` }] : shown;
}

/** Returns the entries with the name of the class, to which other values may belong, too. */
function entriesOfClass(entries: readonly Entry[], rule: Rule | undefined): readonly Entry[] {
  if (rule?.priorities === undefined) return entries;
  const { by } = rule.priorities;
  const at = entries.findLastIndex(({ key }) => key === by);
  return at < 0 ? entries : entries.with(at, { key: by, value: rule.className });
}

/** Counts decisions in {@link TopBuckets}, which samples them. */
export class TopCounts implements BucketCounter {
  readonly samplers: BucketCounter['samplers'];
  private readonly top: TopBuckets;

  constructor(top: TopBuckets) {
    this.top = top;
    this.samplers = top.samplers;
  }

  count(measure: TopMeasure, hits: number, policy: CompiledPolicy, match: Match, take: CountedTake): void {
    const { outcome } = take;
    const about = this.about(policy, match, take);
    const { reportedLimit } = take.rate;
    if (outcome !== undefined && !outcome.bucketUnknown && reportedLimit > 0)
      about.usedRatio = outcome.used / reportedLimit;
    this.top.count(measure, about, hits);
  }

  private about(policy: CompiledPolicy, match: Match, take: CountedTake): BucketDescription {
    const { key: bucket, rulePath, rule } = take;
    // Each class of callers has its own row.
    const name = rule === undefined || rule.className === '' ? bucket : `${bucket}\n${rule.className}`;
    const key = name.length <= MAX_KEY ? name : `#${sha256Hex(name)}`;
    const known = this.top.find(key);
    if (known !== undefined) return known;
    const entries = keptEntries(entriesOfClass(match.entries, rule), policy.secretKeys);
    const limit = rule === undefined ? copyText(overrideOfKey(name)) : undefined;
    const hasRow = rule !== undefined && dependsOnRow(rule);
    const plan = hasRow ? planOfCustomer(policy.plans, match.entries)?.plan : undefined;
    const { domain } = policy;
    return { key: copyText(key), domain, rule: rulePath, entries, limit, plan, usedRatio: undefined };
  }
}

/** Milliseconds between two adjustments of the sampling rate and of the time slices. */
const TICK_MS = 1000;

/**
 * Opens counters for the most active buckets, with `capacity` (TOP_BUCKETS) buckets in each sketch. Returns undefined
 * for 0.
 */
export function openTop(capacity: number, clock: Clock, closers: Closers): TopBuckets | undefined {
  if (capacity === 0) return undefined;
  const nowMicros = (): number => clock.monotonicMicros();
  const top = new TopBuckets({ capacity, nowMicros, random: Math.random });
  const timer = setInterval(() => top.tick(), TICK_MS);
  timer.unref();
  closers.add(async () => clearInterval(timer));
  return top;
}

export function currentSecretKeys(policies: Pick<PolicyProvider, 'current'>): SecretKeyLookup {
  return (domain) => policies.current()?.domains.get(domain)?.secretKeys ?? NO_SECRETS;
}
