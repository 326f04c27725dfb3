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
import { MAX_CHANGES_PER_NOTICE } from '../../../src/storage/controls/live-controls.js';
import { MAX_TOUCHED_KEYS } from '../../../src/storage/controls/touched-keys.js';
import { MAX_PENDING_REQUESTS } from '../../../src/storage/redis/script-requests/script-requests.js';
import { type BoundGroup, shownCount, shownSize } from './bound-texts.js';

const DAY_MICROS = 24 * 3600 * 1_000_000;

/** Bounds of blocks and exemptions. */
export const CONTROL_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'Blocks and exemptions',
    bounds: [
      {
        what: 'current blocks and exemptions',
        bound: shownCount(MAX_CONTROLS),
        beyond: 'weir rejects new blocks and exemptions',
      },
      {
        what: 'memory of all blocks and exemptions in Redis; members of the sorted set that contains them',
        bound: `${shownSize(MAX_LOG_BYTES)}; ${shownCount(MAX_LOG_MEMBERS)}`,
        beyond: 'weir rejects new blocks and exemptions',
      },
      {
        what: 'entries of a block or exemption; duration of a block or exemption',
        bound: `${MAX_IDENTITY_PARTS}; ${MAX_CONTROL_MICROS / DAY_MICROS} days`,
        beyond: 'weir rejects the block or exemption',
      },
      {
        what: 'memory of a block or exemption in Redis',
        bound: shownSize(MAX_ROW_BYTES),
        beyond: 'weir rejects the block or exemption',
      },
      {
        what: 'different sets of entry keys in the blocks and exemptions of a domain',
        bound: shownCount(MAX_KEY_SETS),
        beyond: 'weir rejects a block or exemption with another set of keys',
      },
      {
        what: 'changes in one call to Redis; changes that wait in a process',
        bound: `${MAX_CHANGES}; ${shownCount(MAX_CHANGES_WAITING)}`,
        beyond: 'weir sends the rest in the next call; weir rejects further changes',
      },
      {
        what: 'blocks and exemptions in a reply from Redis',
        bound: `${POLLED_ROWS}, or fewer if the size of the reply would exceed ${shownSize(POLLED_BYTES)}`,
        beyond: 'weir immediately reads the rest',
      },
      {
        what: 'blocks and exemptions that a process applies in one event-loop turn',
        bound: shownCount(MAX_CHANGES_PER_NOTICE),
        beyond: 'the next turn applies the rest',
      },
      {
        what: 'buckets that operators refill within 50 ms, and whose cached denials all processes must discard',
        bound: shownCount(MAX_TOUCHED_KEYS),
        beyond: 'all processes clear their deny caches completely',
      },
      {
        what: 'unanswered calls to Redis for blocks, exemptions and changed buckets',
        bound: shownCount(MAX_PENDING_REQUESTS),
        beyond: 'weir sends no further calls',
      },
    ],
  },
];
