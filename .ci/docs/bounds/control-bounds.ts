import { MAX_CONTROL_MICROS, MAX_CONTROLS, MAX_IDENTITY_PARTS } from '../../../src/limiter/control.js';
import { MAX_KEY_SETS } from '../../../src/service/controls/domain-controls.js';
import { MAX_CHANGES_WAITING } from '../../../src/storage/controls/change-queue.js';
import {
  MAX_CHANGES,
  MAX_LOG_BYTES,
  MAX_LOG_MEMBERS,
  MAX_ROW_BYTES,
  POLLED_BYTES,
  POLLED_ROWS,
} from '../../../src/storage/controls/control-log.js';
import { CHANGES_AT_ONCE } from '../../../src/storage/controls/live-controls.js';
import { MAX_TOUCHED_KEYS } from '../../../src/storage/controls/touched-keys.js';
import { MAX_UNANSWERED } from '../../../src/storage/redis/questions/script-questions.js';
import { type BoundGroup, shownCount, shownSize } from './bound-texts.js';

const DAY_MICROS = 24 * 3600 * 1_000_000;

/** Bounds of blocks and exemptions. */
export const CONTROL_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'Blocks and exemptions',
    bounds: [
      {
        what: 'blocks and exemptions in force; what they take in Redis, and members of their key',
        bound: `${shownCount(MAX_CONTROLS)}; ${shownSize(MAX_LOG_BYTES)}; ${shownCount(MAX_LOG_MEMBERS)}`,
        beyond: 'a new one is refused',
      },
      {
        what: 'entries that one names; how long it lasts; what it takes in Redis',
        bound:
          `${MAX_IDENTITY_PARTS}; ${MAX_CONTROL_MICROS / DAY_MICROS} days; ` + `${shownSize(MAX_ROW_BYTES)}`,
        beyond: 'it is refused',
      },
      {
        what: 'different sets of keys that those of one domain name',
        bound: shownCount(MAX_KEY_SETS),
        beyond: 'one that names a further set is refused',
      },
      {
        what: 'changes of them in one call to Redis; changes of a process that wait',
        bound: `${MAX_CHANGES}; ${shownCount(MAX_CHANGES_WAITING)}`,
        beyond: 'the next call makes them; a further one is refused',
      },
      {
        what: 'what an answer of Redis tells of them',
        bound: `${POLLED_ROWS}, or as many as take ${shownSize(POLLED_BYTES)} and one more`,
        beyond: 'the next call, at once, asks for the rest',
      },
      {
        what: 'of them that a process takes over in one turn of the event loop',
        bound: shownCount(CHANGES_AT_ONCE),
        beyond: 'the next turn takes over the rest',
      },
      {
        what: 'buckets given tokens within 50 ms that deny caches are told the names of',
        bound: shownCount(MAX_TOUCHED_KEYS),
        beyond: 'deny caches forget all that they know',
      },
      {
        what: 'such calls that a Redis has not answered',
        bound: shownCount(MAX_UNANSWERED),
        beyond: 'no further one is sent',
      },
    ],
  },
];
