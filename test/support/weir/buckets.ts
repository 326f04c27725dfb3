import type { BucketAnswer, BucketQuestion } from '../../../src/admin/buckets/messages.js';
import { httpRequest } from '../process/http-client.js';
import type { WeirServer } from './weir.js';

/** Resolves with the answer of a server's `/buckets`: status and parsed body. */
export async function bucketsAnswer(
  server: Pick<WeirServer, 'debugPort'>,
  question: unknown,
): Promise<{ readonly status: number; readonly body: BucketAnswer & { readonly error?: string } }> {
  const { status, body } = await httpRequest(server.debugPort, '/buckets', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  });
  return { status, body: JSON.parse(body) };
}

/** Resolves with the answer to a valid question. */
export async function askBuckets(
  server: Pick<WeirServer, 'debugPort'>,
  question: BucketQuestion,
): Promise<BucketAnswer> {
  const { status, body } = await bucketsAnswer(server, question);
  if (status !== 200) throw new Error(`${status} ${body.error}`);
  return body;
}
