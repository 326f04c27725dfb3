import type { AnswerOptions } from '../../../src/service/answer/answer-options.js';

/** Answers without additions to the policy, for tests that do not test answer options. */
export const PLAIN_ANSWERS: AnswerOptions = {
  shadowMode: false,
  quotaMode: false,
  dynamicMetadata: false,
  decisionMetadata: false,
  limitHeaders: undefined,
  limitRequestHeaders: undefined,
  holdNames: { metadataKey: 'hold', entry: 'hold' },
  envoyAdds: { xRateLimit: false, retryAfter: false },
};
