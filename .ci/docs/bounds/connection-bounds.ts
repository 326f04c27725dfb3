import { MAX_SERVICE_FIELDS, MAX_SYMBOL_BYTES } from '../../../src/codec/services/service-reader.js';
import {
  DEFAULT_RECEIVE_TIMEOUT_MS,
  MAX_AUXILIARY_CALLS,
} from '../../../src/grpc/h2-transport/call-context.js';
import { MAX_UNREAD_BYTES } from '../../../src/grpc/h2-transport/streaming-call.js';
import { DEFAULT_LIMITS } from '../../../src/h2/limits.js';
import { TURN_MS, UNIT_BYTES, UNIT_MS } from '../../../src/h2/serving/read-turns.js';
import {
  type BoundGroup,
  CONNECTION_ENDS,
  shownCount,
  shownSetting,
  shownSize,
  shownTime,
} from './bound-texts.js';

/** Bounds of a connection. */
export const CONNECTION_BOUNDS: readonly BoundGroup[] = [
  {
    title: 'One gRPC connection (GRPC_TRANSPORT=h2)',
    bounds: [
      {
        what: 'reading in a turn of the event loop; of all connections',
        bound: `${shownTime(UNIT_MS)} or ${shownSize(UNIT_BYTES)}; ${shownTime(TURN_MS)}`,
        beyond: 'the rest waits, its socket unread; those that lately took little go first',
      },
      {
        what: 'calls at once',
        bound: shownSetting('GRPC_MAX_CONCURRENT_STREAMS'),
        beyond: 'the call is refused, to be tried again',
      },
      {
        what: 'header list of a call; its encoded block; its CONTINUATION frames',
        bound:
          `${shownSetting('GRPC_MAX_HEADER_BYTES', shownSize)}; ${shownSize(DEFAULT_LIMITS.maxHeaderBlockBytes)}; ` +
          `${DEFAULT_LIMITS.maxContinuations} (more of both with a larger list)`,
        beyond: `431; ${CONNECTION_ENDS}`,
      },
      {
        what: 'unfinished messages together',
        bound: 'twice `GRPC_MAX_MESSAGE_BYTES`, at least 8 MiB',
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'a request that does not come to its end',
        bound: `its \`grpc-timeout\`, at most ${shownTime(DEFAULT_RECEIVE_TIMEOUT_MS)} without one`,
        beyond: 'DEADLINE_EXCEEDED',
      },
      {
        what: 'open calls of health and reflection; their messages in a turn',
        bound: `${MAX_AUXILIARY_CALLS}; 1, and 8 of all connections`,
        beyond: 'RESOURCE_EXHAUSTED; the next turn',
      },
      {
        what: 'answers of a call of health or reflection that wait for its caller to read',
        bound: shownSize(MAX_UNREAD_BYTES),
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'fields of a request of health or reflection; bytes of a name in it',
        bound: `${MAX_SERVICE_FIELDS}; ${shownCount(MAX_SYMBOL_BYTES)}`,
        beyond: 'INTERNAL',
      },
      {
        what: 'calls cancelled, or made to be reset, before their answers (rapid reset)',
        bound:
          `${shownCount(DEFAULT_LIMITS.resetBurst)} at once and ${shownCount(DEFAULT_LIMITS.resetRefillPerSecond)} ` +
          'each second: Envoy cancels whatever a hung Redis does not answer',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'SETTINGS, PING, PRIORITY, WINDOW_UPDATE, empty DATA without requests',
        bound:
          `${shownCount(DEFAULT_LIMITS.controlBurst)} at once, ` +
          `${shownCount(DEFAULT_LIMITS.controlRefillPerSecond)} each second; each request earns some`,
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'answers that are not read',
        bound:
          `it is not read from; ${shownSize(DEFAULT_LIMITS.maxOutputBytes)} of answers, or two of the largest ` +
          'messages',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'the beginning of HTTP/2, and before it the TLS handshake',
        bound: '10 s each',
        beyond: `${CONNECTION_ENDS}; HTTP/1 gets a line of text`,
      },
    ],
  },
];
