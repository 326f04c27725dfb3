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
        what: 'size of a message; of a body of `/json`',
        bound: shownSetting('GRPC_MAX_MESSAGE_BYTES', shownSize),
        beyond: 'RESOURCE_EXHAUSTED; 413',
      },
      {
        what: 'size of a compressed message after decompression',
        bound:
          `${shownSetting('GRPC_MAX_INFLATED_BYTES', shownSize)}, and ${MAX_INFLATION} times its compressed ` +
          'size',
        beyond: 'RESOURCE_EXHAUSTED; decompression stops',
      },
      { what: 'descriptors', bound: shownSetting('MAX_DESCRIPTORS'), beyond: IS_REFUSED },
      { what: 'entries of all descriptors, together', bound: shownCount(MAX_ENTRIES), beyond: IS_REFUSED },
      {
        what: 'protobuf fields, including unknown, nested and repeated fields',
        bound:
          '4 for each allowed entry plus 10 for each allowed descriptor: ' +
          `${shownCount(maxFields(Number(defaultOf('maxDescriptors'))))}`,
        beyond: IS_REFUSED,
      },
      {
        what: 'nesting of a body of `/json`; members of an object',
        bound: `${MAX_JSON_DEPTH} levels; ${MAX_MEMBERS}`,
        beyond: '400',
      },
      {
        what: 'limits that the descriptors match, without candidates',
        bound: shownSetting('MAX_LIMITS'),
        beyond: 'INVALID_ARGUMENT; nothing is taken',
      },
      {
        what: 'matching work',
        bound:
          `${WORK_SHARE * 100} % of the remaining time of the caller, at most ` +
          `${shownTime(MAX_WORK_MICROS / 1000)} of CPU, counted in steps`,
        beyond: `${IS_THROTTLED}; \`weir_match_budget_exceeded_total\``,
      },
      {
        what:
          'uninterrupted work: messages over ' +
          shownSize(LARGE_MESSAGE_BYTES) +
          ', many descriptors, expensive matching',
        bound:
          `slices of about ${shownTime(SLICE_STEPS / STEPS_PER_MICRO / 1000)}, one slice in a turn of the event ` +
          'loop for all requests',
        beyond: 'connections take turns',
      },
      {
        what: 'time that a request waits for its turns',
        bound:
          `${WORK_SHARE * 100} % of the remaining time of the caller, at least ` +
          `${shownTime(MIN_WAIT_MICROS / 1000)}; ${shownTime(WAIT_WITHOUT_DEADLINE_MICROS / 1000)} without a ` +
          'deadline',
        beyond: `${IS_THROTTLED}; \`weir_requests_given_up_total\``,
      },
      {
        what: 'name of a bucket; a part of it',
        bound: `${shownSize(MAX_NAME_BYTES)}; ${shownSize(MAX_PART_BYTES)}`,
        beyond: 'weir uses its SHA-256 hash instead',
      },
      {
        what: 'parts of the request in dynamic metadata; `metadata` of rules in it',
        bound: `${shownSize(MAX_ECHOED_UNITS)} of characters each`,
        beyond: '`descriptorsLeftOut` and `metadataLeftOut` count the omitted parts',
      },
      {
        what: 'a line of the decision log',
        bound: `${MAX_LOGGED_ENTRIES} entries, ${MAX_CHARACTERS} characters per text`,
        beyond: 'the line shows how many are omitted',
      },
    ],
  },
];
