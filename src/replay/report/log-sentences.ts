import { counted, countText, shareText } from './numbers.js';
import type { LogSummary } from './report.js';

/** With a larger share of requests that are late, the numbers of a report may be far from the truth. */
const MAX_LATE = 0.01;

/** Warns if so many requests were late that the log is probably not in the order of time. */
export function unsortedWarning({
  late,
  requests,
}: Pick<LogSummary, 'late' | 'requests'>): readonly string[] {
  if (late <= MAX_LATE * requests) return [];
  const lateText = `${countText(late)} of ${counted(requests, 'request', 'requests')} (${shareText(late / requests)})`;
  return [
    `${lateText} came too late to be sorted by time, so the numbers may be far from the truth. If a file contains ` +
      'several logs in succession, such as those of several pods, pass each log as its own file. Otherwise, set ' +
      '--window to the longest time that a request takes.',
  ];
}

/** Returns sentences about the requests of the log that are special. */
export function logSentences({ unlimited, sample, late, far }: LogSummary): readonly string[] {
  return [
    ...(unlimited > 0 ? [`${counted(unlimited, 'request meets', 'requests meet')} no limit.`] : []),
    ...(sample === undefined ? [] : [`The log is a sample of about 1 in ${countText(1 / sample)} requests.`]),
    ...(late > 0
      ? [
          `${counted(late, 'request', 'requests')} came too late to be sorted by time; weir decided ` +
            `${late === 1 ? 'it' : 'them'} on arrival.`,
        ]
      : []),
    ...(far > 0
      ? [
          `${counted(far, 'request has', 'requests have')} a time more than a week from all others; weir decided ` +
            `${far === 1 ? 'it' : 'them'} at the time of the request before.`,
        ]
      : []),
  ];
}
