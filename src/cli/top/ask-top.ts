import type { TopAnswer, TopBucket, TopQuestion } from '../../admin/buckets/messages.js';
import { callDebugPort } from '../call/debug-call.js';
import type { DebugAccess, DebugServer } from '../call/debug-server.js';
import { findReplicas } from './replicas.js';

/** Merged answer of the replicas, and the failures. */
export interface TopResult {
  /** Undefined if no replica answered. */
  readonly answer: TopAnswer | undefined;
  /** Number of replicas called, and number of replicas that answered. A replica with several addresses counts once. */
  readonly asked: number;
  readonly answered: number;
  /** Why other replicas did not answer: one sentence each, without a full stop. */
  readonly problems: readonly string[];
}

/** Maximum number of rows in the answer of a server. */
export const MAX_TOP_ROWS = 1000;

/** Calls the replicas once. Never rejects. `isMerged`: whether they are all replicas, whose answers are merged. */
export async function askTop(
  replicas: readonly DebugServer[],
  isMerged: boolean,
  access: DebugAccess,
  question: FullTopQuestion,
): Promise<TopResult> {
  const { servers, problems } = await findReplicas(replicas, access.timeoutMs);
  // All rows are requested, because a caller in the middle of one replica's list can be first in the merged list.
  const body = isMerged ? { ...question, limit: MAX_TOP_ROWS } : question;
  const results = await Promise.all(
    servers.map((server) =>
      callDebugPort<TopAnswer>(server, access, {
        path: '/top',
        body,
        fields: {
          of: 'string',
          by: 'string',
          covers: 'number',
          error: 'object',
          sampled: 'number',
          top: 'list',
        },
      }),
    ),
  );
  const answers = results.flatMap((result) => (result.ok ? [result.answer] : []));
  const distinct = withoutDuplicates(answers);
  const failures = results.flatMap((result) => (result.ok ? [] : [result.sentence]));
  const [first] = distinct;
  return {
    answer: isMerged && first !== undefined ? mergeTop(distinct, question) : first,
    asked: servers.length - (answers.length - distinct.length),
    answered: distinct.length,
    problems: [...problems, ...failures],
  };
}

/** Keeps one answer of each server, so that a server with several addresses is not counted twice. */
function withoutDuplicates(answers: readonly TopAnswer[]): readonly TopAnswer[] {
  const names = answers.map(({ server }) => server);
  return answers.filter(({ server }, at) => server === undefined || names.indexOf(server) === at);
}

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
