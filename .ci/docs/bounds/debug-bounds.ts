import { MAX_QUESTION_BYTES, MAX_QUESTION_DEPTH } from '../../../src/admin/admin-endpoint.js';
import { MAX_TOKENS, MAX_TOKENS_BYTES } from '../../../src/admin/admin-tokens.js';
import { MAX_QUESTIONS } from '../../../src/admin/buckets/bucket-admin.js';
import { MAX_CONTROLS_LISTED } from '../../../src/admin/buckets/control-actions.js';
import { MAX_LIMITS_LISTED } from '../../../src/admin/buckets/found-limits.js';
import { MAX_QUESTION_ENTRIES } from '../../../src/admin/buckets/read-question.js';
import { MAX_HISTORY_RULES, MAX_HISTORY_WAITING } from '../../../src/admin/page/history-service.js';
import { MAX_OVERVIEW_DOMAINS } from '../../../src/admin/page/overview.js';
import { MAX_FOLLOWERS } from '../../../src/admin/page/overview-service.js';
import { STALLED_READER_MS } from '../../../src/http/event-feed.js';
import { HTTP_HANDSHAKE_MS, MAX_HANDSHAKES } from '../../../src/http/handshakes.js';
import { MAX_LOOKS } from '../../../src/policy/possible-ends.js';
import { CALL_BOUNDS } from '../../../src/server/workers/calls.js';
import {
  ALL_RING_BYTES,
  RING_BYTES,
  STEP_SECONDS,
  STEPS,
} from '../../../src/telemetry/history/rate-history.js';
import { type BoundGroup, shownCount, shownSetting, shownSize, shownTime } from './bound-texts.js';

const MAX_OWED = CALL_BOUNDS.administer.most;

/** Bounds of the debug port, beside those of every HTTP port. */
export const DEBUG_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'The debug port',
    bounds: [
      {
        what: 'connections in their TLS handshake; time for one',
        bound: `${shownCount(MAX_HANDSHAKES)}; ${shownTime(HTTP_HANDSHAKE_MS)}`,
        beyond: 'the oldest of them ends; the connection ends',
      },
      {
        what: 'a question to `/buckets` or `/top`; lists and objects in each other there',
        bound: `${shownSize(MAX_QUESTION_BYTES)}; ${MAX_QUESTION_DEPTH}`,
        beyond: '413; 400',
      },
      {
        what: 'entries of such a question; questions of `/buckets` at the same time',
        bound: `${MAX_QUESTION_ENTRIES}; ${MAX_QUESTIONS}, that workers have yet to answer ${MAX_OWED}`,
        beyond: '400; 503',
      },
      {
        what: 'limits that an answer of `/buckets` lists; blocks and exemptions',
        bound: `${MAX_LIMITS_LISTED}; ${shownCount(MAX_CONTROLS_LISTED)}`,
        beyond: 'the rest is counted; `reset` and `grant` change only what is listed',
      },
      {
        what: 'nodes of a policy that are looked at for what a part of a descriptor could meet',
        bound: `${shownCount(MAX_LOOKS)}, in slices`,
        beyond: 'the answer says that there may be more',
      },
      {
        what: 'pages that follow `/overview`; one that takes nothing; domains that it lists',
        bound: `${MAX_FOLLOWERS}; ${shownTime(STALLED_READER_MS)}; ${MAX_OVERVIEW_DOMAINS}`,
        beyond: '503; cut off; the rest is counted',
      },
      {
        what: 'rules whose last hour is kept for `/history`, and for all of them together',
        bound:
          `${shownSetting('HISTORY_RULES')}, ${STEPS} steps of ${STEP_SECONDS} s in ${shownSize(RING_BYTES)} each; ` +
          `${shownSize(ALL_RING_BYTES)} for all together`,
        beyond: 'the rule counts only in what is kept of all together, and the answer says so',
      },
      {
        what: 'rules that a question to `/history` names; questions about rules that wait',
        bound: `${MAX_HISTORY_RULES}; ${MAX_HISTORY_WAITING}`,
        beyond: '400; 503',
      },
      {
        what: 'tokens in `ADMIN_TOKENS_FILE`, and its size',
        bound: `${shownCount(MAX_TOKENS)}; ${shownSize(MAX_TOKENS_BYTES)}`,
        beyond: 'the file is bad: the start ends, or the tokens before it stay in force',
      },
    ],
  },
];
