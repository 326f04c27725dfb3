import type { TopAnswer } from '../../admin/buckets/messages.js';
import { callDebugPort } from '../call/debug-call.js';
import type { DebugAccess, DebugServer } from '../call/debug-server.js';
import { type FullTopQuestion, mergeTop } from './merge-top.js';
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
