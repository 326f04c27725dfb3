import type { AdminCaller } from '../admin-access.js';
import type { AdminAnswer, AdminService } from '../admin-endpoint.js';
import { BUCKET_ACTIONS, READING_ACTIONS } from './messages.js';

/** Answers a question that nothing is known of yet: in this process, or in a worker. */
export type Administer = (question: unknown, caller: AdminCaller) => Promise<AdminAnswer>;

/** `/buckets` of the debug port. */
export function bucketsService(administer: Administer): AdminService {
  return {
    path: '/buckets',
    help: 'what is there of buckets, and changes to them, blocks and exemptions: see weir bucket --help',
    rightFor(question) {
      const { action } = Object(question) as { action?: unknown };
      const known = BUCKET_ACTIONS.find((one) => one === action);
      // What is no question is refused, whoever asks it.
      return known === undefined || READING_ACTIONS.has(known) ? 'read' : 'write';
    },
    answer: (question, caller) => administer(question, caller),
  };
}
