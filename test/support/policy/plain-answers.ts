import type { AnswerOptions } from '../../../src/service/answer/answer-options.js';

/** Nothing but what the policy says, for tests about something else. */
export const PLAIN_ANSWERS: AnswerOptions = {
  shadowMode: false,
  quotaMode: false,
  dynamicMetadata: false,
  decisionMetadata: false,
  limitHeaders: undefined,
  limitRequestHeaders: undefined,
  envoyAdds: { xRateLimit: false, retryAfter: false },
};
