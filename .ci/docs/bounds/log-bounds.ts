import { MAX_BUCKETS } from '../../../src/replay/decide/decider.js';
import { MAX_TRACKED } from '../../../src/replay/decide/tracked-buckets.js';
import { MAX_WAITING_BYTES, MAX_WAITING_REQUESTS } from '../../../src/replay/log/order/start-order.js';
import { MAX_FILES } from '../../../src/replay/log/read/files.js';
import { MAX_LINE_BYTES } from '../../../src/replay/log/read/line-splitter.js';
import { MAX_GROUPS } from '../../../src/replay/tally/group-tally.js';
import { type BoundGroup, shownCount, shownSize } from './bound-texts.js';

/** Bounds of `weir replay`. */
export const LOG_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'Access logs of weir replay',
    bounds: [
      {
        what: 'files of a log, which are open at the same time',
        bound: shownCount(MAX_FILES),
        beyond: 'the command fails',
      },
      {
        what: 'size of a line',
        bound: shownSize(MAX_LINE_BYTES),
        beyond: 'the line counts as unreadable',
      },
      {
        what: 'requests that wait to be sorted by time; their memory',
        bound: `${shownCount(MAX_WAITING_REQUESTS)}; ${shownSize(MAX_WAITING_BYTES)}`,
        beyond: 'weir decides the oldest waiting requests, so the window is shorter',
      },
      {
        what: 'buckets of a policy in a replay',
        bound: shownCount(MAX_BUCKETS),
        beyond: 'some buckets begin again as full; the report contains their number',
      },
      {
        what: 'buckets of a policy for which a replay knows whether decisions are certain',
        bound: shownCount(MAX_TRACKED),
        beyond: 'the report has a note that decisions of other buckets may be uncertain',
      },
      {
        what: 'values of the entry of `--by` in a replay',
        bound: shownCount(MAX_GROUPS),
        beyond: 'weir counts the requests of further values only in total and by rule; the report has a note',
      },
    ],
  },
];
