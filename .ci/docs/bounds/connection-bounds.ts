import { MAX_SERVICE_FIELDS, MAX_SYMBOL_BYTES } from '../../../src/codec/services/service-reader.js';
import { MAX_ANSWERED_CALLS } from '../../../src/grpc/h2-transport/answered-calls.js';
import {
  DEFAULT_RECEIVE_TIMEOUT_MS,
  MAX_AUXILIARY_CALLS,
} from '../../../src/grpc/h2-transport/call-context.js';
import { MAX_UNREAD_BYTES } from '../../../src/grpc/h2-transport/streaming-call.js';
import { DEFAULT_LIMITS } from '../../../src/h2/limits.js';
import { SLICE_BYTES, SLICE_MS, TURN_MS } from '../../../src/h2/serving/read-scheduler.js';
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
        what: 'reads in one event-loop turn: from one connection; from all connections',
        bound: `${shownTime(SLICE_MS)} or ${shownSize(SLICE_BYTES)}; ${shownTime(TURN_MS)}`,
        beyond:
          'unread data stays in the socket until a later turn; weir reads connections with little recent traffic first',
      },
      {
        what: 'concurrent calls',
        bound: shownSetting('GRPC_MAX_CONCURRENT_STREAMS'),
        beyond: 'weir refuses the call, and the client may retry it',
      },
      {
        what: "size of a call's header list",
        bound: shownSetting('GRPC_MAX_HEADER_BYTES', shownSize),
        beyond: '431',
      },
      {
        what: "size of a call's encoded header list; number of CONTINUATION frames for this list",
        bound:
          `${shownSize(DEFAULT_LIMITS.maxHeaderBlockBytes)}; ${DEFAULT_LIMITS.maxContinuations} (both ` +
          'bounds increase with `GRPC_MAX_HEADER_BYTES`)',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'total size of incomplete messages',
        bound: 'twice `GRPC_MAX_MESSAGE_BYTES`, at least 8 MiB',
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'time to receive a complete request',
        bound: `the call's \`grpc-timeout\`, or ${shownTime(DEFAULT_RECEIVE_TIMEOUT_MS)} for a call without a timeout`,
        beyond: 'DEADLINE_EXCEEDED',
      },
      {
        what: 'open health and reflection calls; messages of these calls that weir handles in one event-loop turn',
        bound: `${MAX_AUXILIARY_CALLS}; 1 for each connection, and 8 for all connections`,
        beyond: 'RESOURCE_EXHAUSTED; further messages wait for the next turn',
      },
      {
        what: "size of a health or reflection call's unread answers",
        bound: shownSize(MAX_UNREAD_BYTES),
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'fields in a health or reflection request; bytes in a service or symbol name',
        bound: `${MAX_SERVICE_FIELDS}; ${shownCount(MAX_SYMBOL_BYTES)}`,
        beyond: 'INTERNAL',
      },
      {
        what: 'calls that are canceled or reset before their answer (rapid reset)',
        bound:
          `a burst of ${shownCount(DEFAULT_LIMITS.resetBurst)}, then ` +
          `${shownCount(DEFAULT_LIMITS.resetRefillPerSecond)} per second. The bound is high because Envoy ` +
          'cancels many calls while Redis does not answer.',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'answered calls with holds that weir remembers, to release the holds if the client resets the call',
        bound: shownCount(MAX_ANSWERED_CALLS),
        beyond: 'weir forgets the oldest call, and its holds end when they are settled or expire',
      },
      {
        what: 'SETTINGS, PING, PRIORITY, WINDOW_UPDATE and empty DATA frames',
        bound:
          `a burst of ${shownCount(DEFAULT_LIMITS.controlBurst)}, then ` +
          `${shownCount(DEFAULT_LIMITS.controlRefillPerSecond)} per second; each request allows ` +
          'additional frames',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'unread answers',
        bound:
          `${shownSize(DEFAULT_LIMITS.maxOutputBytes)}, or the size of two maximum-size messages if that ` +
          'is more; until the client reads the answers, weir reads no requests from the connection',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'duration of the TLS handshake; time until the client sends the HTTP/2 preface',
        bound: '10 s each',
        beyond: `${CONNECTION_ENDS}; an HTTP/1 client gets a plain-text explanation`,
      },
    ],
  },
];
