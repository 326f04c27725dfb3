import type { TopAnswer, TopBucket, TopQuestion } from '../../admin/buckets/messages.js';

/** A question with all defaults filled in. */
export type FullTopQuestion = Required<Pick<TopQuestion, 'by' | 'of' | 'limit'>> & TopQuestion;

/** Sorts buckets in descending order by the number denied or used, and then by the other number. */
function sortTop(top: readonly TopBucket[], by: 'denied' | 'used'): readonly TopBucket[] {
  const other = by === 'denied' ? 'used' : 'denied';
  return [...top].sort((one, two) => two[by] - one[by] || two[other] - one[other]);
}

/**
 * Merges the answers of several replicas: numbers and errors of the same bucket are added. A replica that does not list
 * a bucket may have counted up to {@link TopAnswer.error} for it, so a sum may be wrong by that much in both
 * directions. The used ratio is the largest of any replica, because replicas with a shared Redis all see the same
 * bucket.
 */
export function mergeTop(answers: readonly TopAnswer[], { by, of, limit }: FullTopQuestion): TopAnswer {
  const buckets = new Map<string, TopBucket>();
  for (const one of answers.flatMap(({ top }) => top)) {
    const entries = one.entries.map(({ key, value }) => [key, value]);
    const name = JSON.stringify([one.domain, one.rule, one.limit, entries]);
    const known = buckets.get(name);
    buckets.set(name, known === undefined ? one : addBuckets(known, one));
  }
  const sum = (of: (answer: TopAnswer) => number): number => answers.reduce((all, one) => all + of(one), 0);
  return {
    of,
    by,
    covers: Math.min(...answers.map(({ covers }) => covers)),
    error: { denied: sum(({ error }) => error.denied), used: sum(({ error }) => error.used) },
    sampled: Math.max(...answers.map(({ sampled }) => sampled)),
    top: sortTop([...buckets.values()], by).slice(0, limit),
  };
}

function addBuckets(one: TopBucket, other: TopBucket): TopBucket {
  return {
    ...one,
    denied: one.denied + other.denied,
    denied_error: one.denied_error + other.denied_error,
    used: one.used + other.used,
    used_error: one.used_error + other.used_error,
    used_ratio: Math.max(one.used_ratio, other.used_ratio),
  };
}
