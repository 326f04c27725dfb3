import { MAX_QUESTION_BYTES, MAX_QUESTION_DEPTH } from '../../../src/admin/admin-endpoint.js';
import { MAX_TOKENS, MAX_TOKENS_BYTES } from '../../../src/admin/admin-tokens.js';
import { MAX_QUESTIONS } from '../../../src/admin/buckets/bucket-admin.js';
import { MAX_LIMITS_LISTED } from '../../../src/admin/buckets/found-limits.js';
import { MAX_QUESTION_ENTRIES } from '../../../src/admin/buckets/read-question.js';
import { MAX_HISTORY_RULES, MAX_HISTORY_WAITING } from '../../../src/admin/page/history-service.js';
import { MAX_OVERVIEW_DOMAINS } from '../../../src/admin/page/overview.js';
import { MAX_SUBSCRIBERS } from '../../../src/admin/page/overview-service.js';
import { STALLED_READER_MS } from '../../../src/http/event-feed.js';
import { HTTP_HANDSHAKE_MS, MAX_HANDSHAKES } from '../../../src/http/handshakes.js';
import { MAX_VISITED_NODES } from '../../../src/policy/possible-ends.js';
import { CALL_BOUNDS } from '../../../src/server/workers/calls.js';
import {
  ALL_RING_BYTES,
  RING_BYTES,
  STEP_SECONDS,
  STEPS,
} from '../../../src/telemetry/history/rate-history.js';
import { type BoundGroup, shownCount, shownSetting, shownSize, shownTime } from './bound-texts.js';

const MAX_OWED = CALL_BOUNDS.administer.maxPending;

/** Bounds of the debug port, in addition to the bounds of all HTTP ports. */
export const DEBUG_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'The debug port',
    bounds: [
      {
        what: 'concurrent TLS handshakes; duration of a handshake',
        bound: `${shownCount(MAX_HANDSHAKES)}; ${shownTime(HTTP_HANDSHAKE_MS)}`,
        beyond:
          'weir closes the connection with the oldest handshake; weir closes the connection after this time',
      },
      {
        what: "size of a request to `/buckets` or `/top`; nesting depth of the request's JSON",
        bound: `${shownSize(MAX_QUESTION_BYTES)}; ${MAX_QUESTION_DEPTH}`,
        beyond: '413; 400',
      },
      {
        what: 'entries in a request to `/buckets`; concurrent requests to `/buckets`',
        bound: `${MAX_QUESTION_ENTRIES}; ${MAX_QUESTIONS}, or ${MAX_OWED} that wait for workers`,
        beyond: '400; 503',
      },
      {
        what: 'limits in an answer from `/buckets`',
        bound: String(MAX_LIMITS_LISTED),
        beyond:
          'the answer shows the number of omitted limits; `reset` and `grant` change only the listed limits',
      },
      {
        what: 'nodes that weir searches if a request contains only some entries of a descriptor',
        bound: `${shownCount(MAX_VISITED_NODES)}, in slices`,
        beyond: 'the answer says that more limits may exist',
      },
      {
        what: 'open pages that receive `/overview`; time for which a page reads no data',
        bound: `${MAX_SUBSCRIBERS}; ${shownTime(STALLED_READER_MS)}`,
        beyond: '503; weir closes the connection',
      },
      {
        what: 'domains in an answer from `/overview`',
        bound: shownCount(MAX_OVERVIEW_DOMAINS),
        beyond: 'the answer shows the number of omitted domains',
      },
      {
        what: 'rules with a separate history of the last hour; memory for the combined history of all rules',
        bound:
          `${shownSetting('HISTORY_RULES')}, each with ${STEPS} steps of ${STEP_SECONDS} s in ` +
          `${shownSize(RING_BYTES)}; ${shownSize(ALL_RING_BYTES)}`,
        beyond:
          'weir counts further rules only in the total, and the answer from `/history` reports that rules are missing',
      },
      {
        what: 'rules in a request to `/history`; waiting requests to `/history`',
        bound: `${MAX_HISTORY_RULES}; ${MAX_HISTORY_WAITING}`,
        beyond: '400; 503',
      },
      {
        what: 'tokens in `ADMIN_TOKENS_FILE`; size of the file',
        bound: `${shownCount(MAX_TOKENS)}; ${shownSize(MAX_TOKENS_BYTES)}`,
        beyond: 'the file is invalid: weir does not start, or keeps the previous tokens',
      },
    ],
  },
];
