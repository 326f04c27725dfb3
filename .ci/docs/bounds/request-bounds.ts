import { MAX_JSON_DEPTH, MAX_MEMBERS } from '../../../src/codec/json/json-request.js';
import { LARGE_MESSAGE_BYTES, MAX_ENTRIES, maxFields } from '../../../src/codec/messages.js';
import { MAX_INFLATION } from '../../../src/grpc/grpc-server.js';
import { MAX_NAME_BYTES, MAX_PART_BYTES } from '../../../src/policy/names/bucket-key.js';
import { defaultOf } from '../../../src/server/settings/settings-table.js';
import { MAX_ECHOED_UNITS } from '../../../src/service/answer/merged-metadata.js';
import {
  MAX_WORK_MICROS,
  MIN_WAIT_MICROS,
  STEPS_PER_MICRO,
  WAIT_WITHOUT_DEADLINE_MICROS,
  WORK_SHARE,
} from '../../../src/service/caller.js';
import { MAX_TOKEN_CHARACTERS } from '../../../src/service/holds/hold-token.js';
import { MAX_WORK_AT_ONCE } from '../../../src/service/holds/holds.js';
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
        what: 'size of a gRPC message or `/json` body',
        bound: shownSetting('GRPC_MAX_MESSAGE_BYTES', shownSize),
        beyond: 'RESOURCE_EXHAUSTED; 413',
      },
      {
        what: 'size of a compressed message after decompression',
        bound:
          `${shownSetting('GRPC_MAX_INFLATED_BYTES', shownSize)}, and at most ${MAX_INFLATION} times the ` +
          'compressed size',
        beyond: 'RESOURCE_EXHAUSTED; decompression stops',
      },
      { what: 'descriptors', bound: shownSetting('MAX_DESCRIPTORS'), beyond: IS_REFUSED },
      {
        what: 'total number of entries in all descriptors',
        bound: shownCount(MAX_ENTRIES),
        beyond: IS_REFUSED,
      },
      {
        what: 'protobuf fields, including unknown, nested and repeated fields',
        bound:
          '4 for each allowed entry plus 10 for each allowed descriptor: ' +
          `${shownCount(maxFields(Number(defaultOf('maxDescriptors'))))}`,
        beyond: IS_REFUSED,
      },
      {
        what: 'nesting depth of a `/json` body; members of a JSON object',
        bound: `${MAX_JSON_DEPTH} levels; ${MAX_MEMBERS}`,
        beyond: '400',
      },
      {
        what: 'limits that match a request',
        bound: shownSetting('MAX_LIMITS'),
        beyond: 'INVALID_ARGUMENT; weir takes no tokens',
      },
      {
        what: 'slots and reservations that the hold tokens of a request settle at once; characters of these tokens',
        bound: `${shownCount(MAX_WORK_AT_ONCE)}; ${shownCount(MAX_TOKEN_CHARACTERS)}`,
        beyond: 'weir settles the rest within seconds; further tokens have no effect',
      },
      {
        what: 'matching work',
        bound:
          `${WORK_SHARE * 100}% of the caller's remaining time, at most ` +
          `${shownTime(MAX_WORK_MICROS / 1000)} of CPU time; weir estimates the CPU time from the number ` +
          'of matching steps',
        beyond: `${IS_THROTTLED}. \`weir_match_budget_exceeded_total\` counts these requests.`,
      },
      {
        what:
          `long-running work on a request: a message over ${shownSize(LARGE_MESSAGE_BYTES)}, many ` +
          'descriptors, or expensive matching',
        bound:
          `slices of about ${shownTime(SLICE_STEPS / STEPS_PER_MICRO / 1000)}; in each event-loop turn, ` +
          'one slice for all requests together',
        beyond: 'connections take turns',
      },
      {
        what: 'time for which a request waits for its turns',
        bound:
          `${WORK_SHARE * 100}% of the caller's remaining time, at least ${shownTime(MIN_WAIT_MICROS / 1000)}; ` +
          `${shownTime(WAIT_WITHOUT_DEADLINE_MICROS / 1000)} for a caller without a deadline`,
        beyond: `${IS_THROTTLED}. \`weir_requests_given_up_total\` counts these requests.`,
      },
      {
        what: 'size of a bucket name; size of a part of the name',
        bound: `${shownSize(MAX_NAME_BYTES)}; ${shownSize(MAX_PART_BYTES)}`,
        beyond: 'weir replaces the name, or the part, with its SHA-256 hash',
      },
      {
        what:
          'parts of the request that weir copies to dynamic metadata; `metadata` of rules that weir ' +
          'copies to dynamic metadata',
        bound: `${shownSize(MAX_ECHOED_UNITS)} each (1 byte per UTF-16 code unit)`,
        beyond: '`descriptorsLeftOut` and `metadataLeftOut` count the omitted parts',
      },
      {
        what: 'content of a decision in a debug log line',
        bound: `${MAX_LOGGED_ENTRIES} entries, ${MAX_CHARACTERS} characters per string`,
        beyond: 'the line shows the number of omitted entries or characters',
      },
    ],
  },
];
