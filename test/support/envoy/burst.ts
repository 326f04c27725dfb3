import { type HttpAnswer, httpRequest } from '../process/http-client.js';

/** Answers to requests that were sent together. */
export interface Burst {
  readonly answers: readonly HttpAnswer[];
  /** Milliseconds of `performance.now()`: the burst was decided between these times. */
  readonly firstSentAt: number;
  readonly firstAnsweredAt: number;
  readonly lastSentAt: number;
  readonly lastAnsweredAt: number;
  /** Returns the number of answers with a status. */
  count(status: number): number;
}

/** Sends `count` GET requests at the same time, each on its own connection. */
export async function fireBurst(
  port: number,
  path: string,
  count: number,
  headers: Record<string, string>,
): Promise<Burst> {
  const answers = await Promise.all(
    Array.from({ length: count }, () => httpRequest(port, path, { headers })),
  );
  const sent = answers.map(({ sentAt }) => sentAt);
  const answered = answers.map(({ answeredAt }) => answeredAt);
  return {
    answers,
    firstSentAt: Math.min(...sent),
    lastSentAt: Math.max(...sent),
    firstAnsweredAt: Math.min(...answered),
    lastAnsweredAt: Math.max(...answered),
    count: (status) => answers.filter((answer) => answer.status === status).length,
  };
}
