import type { TopAnswer, TopBucket } from '../../admin/buckets/messages.js';
import { areEntries, isNumber, isText, listOf, objectOf, optional } from '../call/answer-shape.js';
import { callDebugPort } from '../call/debug-call.js';
import { type DebugAccess, type DebugServer, debugName } from '../call/debug-server.js';
import { type FullTopQuestion, mergeTop, sortTop } from './merge-top.js';
import { findReplicas, type ReplicaList } from './replicas.js';

/** Server to call, or the list of all replicas. */
export type TopTarget =
  | { readonly kind: 'one'; readonly server: DebugServer }
  | { readonly kind: 'all'; readonly list: ReplicaList };

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

const isRow = objectOf<TopBucket>({
  domain: isText,
  rule: isText,
  entries: areEntries,
  limit: optional(isText),
  plan: optional(isText),
  denied: isNumber,
  denied_error: isNumber,
  used: isNumber,
  used_error: isNumber,
  used_ratio: isNumber,
});

const isTopAnswer = objectOf<TopAnswer>({
  server: optional(isText),
  of: isText,
  by: isText,
  covers: isNumber,
  error: objectOf<TopAnswer['error']>({ denied: isNumber, used: isNumber }),
  sampled: isNumber,
  top: listOf(isRow),
});

/** Calls the server or all replicas once. Never rejects. */
export async function askTop(
  target: TopTarget,
  access: DebugAccess,
  question: FullTopQuestion,
): Promise<TopResult> {
  const { servers, problems } =
    target.kind === 'one'
      ? { servers: [target.server], problems: [] }
      : await findReplicas(target.list, access.timeoutMs);
  // All rows are requested, because a caller in the middle of one replica's list can be first in the merged list.
  const body = target.kind === 'one' ? question : { ...question, limit: MAX_TOP_ROWS };
  const results = await Promise.all(
    servers.map((server) =>
      callDebugPort(server, access, { path: '/top', body, changes: false, isAnswer: isTopAnswer }),
    ),
  );
  const answers = results.flatMap((result) => (result.ok ? [result.answer] : []));
  const distinct = withoutDuplicates(answers);
  const failures = results.flatMap((result) => (result.ok ? [] : [result.sentence]));
  return {
    answer: answers.length === 0 ? undefined : combineAnswers(distinct, target, question),
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

function combineAnswers(
  answers: readonly TopAnswer[],
  target: TopTarget,
  question: FullTopQuestion,
): TopAnswer {
  const [first] = answers;
  return first !== undefined && target.kind === 'one'
    ? { ...first, top: sortTop(first.top, question.by) }
    : mergeTop(answers, question);
}

/** Returns the name of the target for a heading. */
export function targetName(target: TopTarget, { asked, answered }: TopResult): string {
  if (target.kind === 'one') return debugName(target.server).replace('http://', '');
  return `${answered} of ${asked} replicas`;
}
