import type { TopAnswer, TopBucket, TopQuestion } from '../../admin/buckets/messages.js';

/** What a question asks when it does not say. */
export type FullTopQuestion = Required<Pick<TopQuestion, 'by' | 'of' | 'limit'>> & TopQuestion;

/** Sorts buckets by what is asked for, the most first. */
export function sortedTop(top: readonly TopBucket[], by: 'denied' | 'used'): readonly TopBucket[] {
  const other = by === 'denied' ? 'used' : 'denied';
  return [...top].sort((one, two) => two[by] - one[by] || two[other] - one[other]);
}

/**
 * The answers of several replicas as one: numbers of a bucket are added up, and so are the errors. A replica that does
 * not list a bucket may have seen it at most {@link TopAnswer.error} times, so that sums are wrong by that much in both
 * directions. The share of the limit is the largest that a replica saw: with a common Redis it is that of all.
 */
export function mergedTop(answers: readonly TopAnswer[], { by, of, limit }: FullTopQuestion): TopAnswer {
  const buckets = new Map<string, TopBucket>();
  for (const one of answers.flatMap(({ top }) => top)) {
    const entries = one.entries.map(({ key, value }) => [key, value]);
    const name = JSON.stringify([one.domain, one.rule, one.limit, entries]);
    const known = buckets.get(name);
    buckets.set(name, known === undefined ? one : addedTop(known, one));
  }
  const sum = (of: (answer: TopAnswer) => number): number => answers.reduce((all, one) => all + of(one), 0);
  return {
    of,
    by,
    covers: Math.min(...answers.map(({ covers }) => covers)),
    error: { denied: sum(({ error }) => error.denied), used: sum(({ error }) => error.used) },
    sampled: Math.max(...answers.map(({ sampled }) => sampled)),
    top: sortedTop([...buckets.values()], by).slice(0, limit),
  };
}

function addedTop(one: TopBucket, other: TopBucket): TopBucket {
  return {
    ...one,
    denied: one.denied + other.denied,
    denied_error: one.denied_error + other.denied_error,
    used: one.used + other.used,
    used_error: one.used_error + other.used_error,
    used_ratio: Math.max(one.used_ratio, other.used_ratio),
  };
}
