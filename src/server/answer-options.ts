import type { AnswerOptions } from '../service/answer-options.js';
import type { Settings } from './settings-table.js';

/** What the settings say of every answer. */
export function answerOptions(settings: Settings): AnswerOptions {
  const { shadowMode, quotaMode, responseDynamicMetadata: dynamicMetadata } = settings;
  const names = {
    limit: settings.limitHeader,
    remaining: settings.remainingHeader,
    reset: settings.resetHeader,
  };
  return { shadowMode, quotaMode, dynamicMetadata, limitHeaders: settings.limitHeaders ? names : undefined };
}
