import { MAX_SERVICE_FIELDS, MAX_SYMBOL_BYTES } from '../../../src/codec/services/service-reader.js';
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
        what: 'reads from a connection in a turn of the event loop; reads from all connections',
        bound: `${shownTime(SLICE_MS)} or ${shownSize(SLICE_BYTES)}; ${shownTime(TURN_MS)}`,
        beyond: 'the rest waits in the socket; weir reads connections with little recent traffic first',
      },
      {
        what: 'concurrent calls',
        bound: shownSetting('GRPC_MAX_CONCURRENT_STREAMS'),
        beyond: 'weir refuses the call, and the client may retry it',
      },
      {
        what: 'header list of a call',
        bound: shownSetting('GRPC_MAX_HEADER_BYTES', shownSize),
        beyond: '431',
      },
      {
        what: 'encoded header list of a call; number of its CONTINUATION frames',
        bound:
          `${shownSize(DEFAULT_LIMITS.maxHeaderBlockBytes)}; ${DEFAULT_LIMITS.maxContinuations} (both grow with ` +
          '`GRPC_MAX_HEADER_BYTES`)',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'total size of incomplete messages',
        bound: 'twice `GRPC_MAX_MESSAGE_BYTES`, at least 8 MiB',
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'time until a request is complete',
        bound: `its \`grpc-timeout\`, or ${shownTime(DEFAULT_RECEIVE_TIMEOUT_MS)} without one`,
        beyond: 'DEADLINE_EXCEEDED',
      },
      {
        what: 'open health and reflection calls; messages of these calls in a turn',
        bound: `${MAX_AUXILIARY_CALLS}; 1, and 8 for all connections`,
        beyond: 'RESOURCE_EXHAUSTED; the next turn',
      },
      {
        what: 'unread answers of a health or reflection call',
        bound: shownSize(MAX_UNREAD_BYTES),
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'fields in a health or reflection request; bytes of a name',
        bound: `${MAX_SERVICE_FIELDS}; ${shownCount(MAX_SYMBOL_BYTES)}`,
        beyond: 'INTERNAL',
      },
      {
        what: 'calls that are canceled or reset before their answer (rapid reset)',
        bound:
          `a burst of ${shownCount(DEFAULT_LIMITS.resetBurst)}, then ` +
          `${shownCount(DEFAULT_LIMITS.resetRefillPerSecond)} per second (Envoy cancels many calls while Redis ` +
          'does not answer)',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'SETTINGS, PING, PRIORITY, WINDOW_UPDATE and empty DATA frames',
        bound:
          `a burst of ${shownCount(DEFAULT_LIMITS.controlBurst)}, then ` +
          `${shownCount(DEFAULT_LIMITS.controlRefillPerSecond)} per second; each request adds to the budget`,
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'unread answers',
        bound:
          `${shownSize(DEFAULT_LIMITS.maxOutputBytes)}, or two messages of the maximum size; until the client ` +
          'reads them, weir reads no requests from the connection',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'duration of the TLS handshake; time until the HTTP/2 preface',
        bound: '10 s each',
        beyond: `${CONNECTION_ENDS}; an HTTP/1 client gets an explanation as text`,
      },
    ],
  },
];
