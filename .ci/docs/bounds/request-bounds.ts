import { MAX_JSON_DEPTH, MAX_MEMBERS } from '../../../src/codec/json/json-request.js';
import { LARGE_MESSAGE_BYTES, MAX_ENTRIES, maxFields } from '../../../src/codec/messages.js';
import { MAX_INFLATION } from '../../../src/grpc/grpc-server.js';
import { MAX_NAME_BYTES, MAX_PART_BYTES } from '../../../src/policy/names/bucket-key.js';
import { defaultOf } from '../../../src/server/settings/settings-table.js';
import { MAX_ECHOED_UNITS } from '../../../src/service/answer/dynamic-metadata.js';
import {
  MAX_WORK_MICROS,
  MIN_WAIT_MICROS,
  STEPS_PER_MICRO,
  WAIT_WITHOUT_DEADLINE_MICROS,
  WORK_SHARE,
} from '../../../src/service/caller.js';
import { MAX_LOGGED_ENTRIES } from '../../../src/service/record/decision-line.js';
import { SLICE_STEPS } from '../../../src/service/sliced-plan.js';
import { MAX_CHARACTERS } from '../../../src/shown-text.js';
import {
  type BoundGroup,
  IS_REFUSED,
  IS_THROTTLED,
  shownCount,
  shownSetting,
  shownSize,
  shownTime,
} from './bound-texts.js';

/** Bounds of one request. */
export const REQUEST_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'One request',
    bounds: [
      {
        what: 'length of a message, and of a body of `/json`',
        bound: shownSetting('GRPC_MAX_MESSAGE_BYTES', shownSize),
        beyond: 'RESOURCE_EXHAUSTED; 413',
      },
      {
        what: 'what a compressed message may become',
        bound: `${shownSetting('GRPC_MAX_INFLATED_BYTES', shownSize)}, and ${MAX_INFLATION} times its length`,
        beyond: 'RESOURCE_EXHAUSTED; inflating stops there',
      },
      { what: 'descriptors', bound: shownSetting('MAX_DESCRIPTORS'), beyond: IS_REFUSED },
      { what: 'entries of all descriptors together', bound: shownCount(MAX_ENTRIES), beyond: IS_REFUSED },
      {
        what: 'protobuf fields, unknown, nested and repeated ones included',
        bound:
          '4 for each entry and 10 for each descriptor that are allowed: ' +
          `${shownCount(maxFields(Number(defaultOf('maxDescriptors'))))}`,
        beyond: IS_REFUSED,
      },
      {
        what: 'nesting of a body of `/json`; members of one of its objects',
        bound: `${MAX_JSON_DEPTH} levels; ${MAX_MEMBERS}`,
        beyond: '400',
      },
      {
        what: 'limits that the descriptors meet, candidates apart',
        bound: shownSetting('MAX_LIMITS'),
        beyond: 'INVALID_ARGUMENT, nothing taken',
      },
      {
        what: 'work of matching',
        bound:
          `${WORK_SHARE * 100} % of the time that the caller has left, at most ` +
          `${shownTime(MAX_WORK_MICROS / 1000)} of CPU, counted in steps`,
        beyond: `${IS_THROTTLED}; \`weir_match_budget_exceeded_total\``,
      },
      {
        what:
          'work at a stretch: messages over ' +
          shownSize(LARGE_MESSAGE_BYTES) +
          ', many descriptors, costly matching',
        bound:
          `about ${shownTime(SLICE_STEPS / STEPS_PER_MICRO / 1000)}, one stretch in a turn of the event ` +
          'loop for all requests',
        beyond: 'the rest takes turns with other connections',
      },
      {
        what: 'waiting for those turns',
        bound:
          `${WORK_SHARE * 100} % of the time that the caller has left, at least ` +
          `${shownTime(MIN_WAIT_MICROS / 1000)}; ${shownTime(WAIT_WITHOUT_DEADLINE_MICROS / 1000)} without a ` +
          'deadline',
        beyond: `${IS_THROTTLED}; \`weir_requests_given_up_total\``,
      },
      {
        what: 'name of a bucket; a text in it',
        bound: `${shownSize(MAX_NAME_BYTES)}; ${shownSize(MAX_PART_BYTES)}`,
        beyond: 'a digest (SHA-256) stands for it',
      },
      {
        what: 'what dynamic metadata repeat of a request; `metadata` of rules in it',
        bound: `${shownSize(MAX_ECHOED_UNITS)} of characters each`,
        beyond: 'what is left out is counted in `descriptorsLeftOut`, `metadataLeftOut`',
      },
      {
        what: 'a line of the decision log',
        bound: `${MAX_LOGGED_ENTRIES} entries, ${MAX_CHARACTERS} characters of a text`,
        beyond: 'the line says how many more',
      },
    ],
  },
];
