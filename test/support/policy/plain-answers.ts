import type { AnswerOptions } from '../../../src/service/answer/answer-options.js';

/** Answers without additions to the policy. */
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
