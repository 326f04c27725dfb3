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
        what: 'reads in a turn of the event loop; of all connections together',
        bound: `${shownTime(SLICE_MS)} or ${shownSize(SLICE_BYTES)}; ${shownTime(TURN_MS)}`,
        beyond: 'the rest stays in the socket; connections with little recent use are first',
      },
      {
        what: 'concurrent calls',
        bound: shownSetting('GRPC_MAX_CONCURRENT_STREAMS'),
        beyond: 'the call is refused, and the client may retry it',
      },
      {
        what: 'header list of a call; its encoded size; its CONTINUATION frames',
        bound:
          `${shownSetting('GRPC_MAX_HEADER_BYTES', shownSize)}; ` +
          `${shownSize(DEFAULT_LIMITS.maxHeaderBlockBytes)}; ${DEFAULT_LIMITS.maxContinuations} (the last two ` +
          'grow with the setting)',
        beyond: `431; ${CONNECTION_ENDS}`,
      },
      {
        what: 'incomplete messages, together',
        bound: 'twice `GRPC_MAX_MESSAGE_BYTES`, at least 8 MiB',
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'an incomplete request',
        bound: `its \`grpc-timeout\`, or ${shownTime(DEFAULT_RECEIVE_TIMEOUT_MS)} without one`,
        beyond: 'DEADLINE_EXCEEDED',
      },
      {
        what: 'open calls of health and reflection; their messages per turn',
        bound: `${MAX_AUXILIARY_CALLS}; 1, and 8 for all connections`,
        beyond: 'RESOURCE_EXHAUSTED; the next turn',
      },
      {
        what: 'unread answers of a call of health or reflection',
        bound: shownSize(MAX_UNREAD_BYTES),
        beyond: 'RESOURCE_EXHAUSTED',
      },
      {
        what: 'fields of a request of health or reflection; bytes of a name',
        bound: `${MAX_SERVICE_FIELDS}; ${shownCount(MAX_SYMBOL_BYTES)}`,
        beyond: 'INTERNAL',
      },
      {
        what: 'calls canceled or reset before their answer (rapid reset)',
        bound:
          `a burst of ${shownCount(DEFAULT_LIMITS.resetBurst)}, then ` +
          `${shownCount(DEFAULT_LIMITS.resetRefillPerSecond)} per second, because Envoy cancels many calls when ` +
          'Redis hangs',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'SETTINGS, PING, PRIORITY, WINDOW_UPDATE and empty DATA frames',
        bound:
          `a burst of ${shownCount(DEFAULT_LIMITS.controlBurst)}, then ` +
          `${shownCount(DEFAULT_LIMITS.controlRefillPerSecond)} per second, and more for each request`,
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'unread answers',
        bound:
          `${shownSize(DEFAULT_LIMITS.maxOutputBytes)}, or two messages of the maximum size; meanwhile weir ` +
          'reads no requests from the connection',
        beyond: CONNECTION_ENDS,
      },
      {
        what: 'the TLS handshake; the start of HTTP/2',
        bound: '10 s each',
        beyond: `${CONNECTION_ENDS}; an HTTP/1 client gets a line of text`,
      },
    ],
  },
];
