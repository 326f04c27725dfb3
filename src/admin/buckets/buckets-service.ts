import type { AdminCaller } from '../admin-access.js';
import type { AdminAnswer, AdminService } from '../admin-endpoint.js';
import { BUCKET_ACTIONS, READING_ACTIONS } from './messages.js';

/** Validates and answers a question, in this process or in a worker. */
export type Administer = (question: unknown, caller: AdminCaller) => Promise<AdminAnswer>;

/** Returns the service of `/buckets` on the debug port. */
export function bucketsService(administer: Administer): AdminService {
  return {
    path: '/buckets',
    help: 'shows and changes buckets; see weir bucket --help',
    rightFor(question) {
      const { action } = Object(question) as { action?: unknown };
      const known = BUCKET_ACTIONS.find((one) => one === action);
      // An invalid question is refused for every caller.
      return known === undefined || READING_ACTIONS.has(known) ? 'read' : 'write';
    },
    answer: (question, caller) => administer(question, caller),
  };
}
