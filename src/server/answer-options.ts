import type { RequestBounds } from '../codec/messages.js';
import type { AnswerOptions } from '../service/answer/answer-options.js';
import type { Settings } from './settings/settings-table.js';

/** The settings that apply to every answer. */
export function answerOptions(settings: Settings): AnswerOptions {
  const { shadowMode, quotaMode, responseDynamicMetadata, decisionMetadata, envoyAddsHeaders } = settings;
  const names = {
    limit: settings.limitHeader,
    remaining: settings.remainingHeader,
    reset: settings.resetHeader,
  };
  const requestNames = {
    limit: settings.requestLimitHeader,
    remaining: settings.requestRemainingHeader,
    reset: settings.requestResetHeader,
  };
  return {
    shadowMode,
    quotaMode,
    dynamicMetadata: responseDynamicMetadata,
    decisionMetadata,
    limitHeaders: settings.limitHeaders ? names : undefined,
    limitRequestHeaders: settings.limitRequestHeaders ? requestNames : undefined,
    holdNames: { metadataKey: settings.holdMetadataKey, entry: settings.holdEntry },
    envoyAdds: {
      xRateLimit: envoyAddsHeaders.includes('x-ratelimit'),
      retryAfter: envoyAddsHeaders.includes('retry-after'),
    },
  };
}

export function requestBounds({ maxRequestBytes, maxDescriptors, maxEntries }: Settings): RequestBounds {
  return { maxBytes: maxRequestBytes, maxDescriptors, maxEntries };
}
