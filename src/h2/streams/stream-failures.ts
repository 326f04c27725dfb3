import { ERROR_CODE } from '../error-code.js';
import { ConnectionFailure, StreamFailure } from '../failure.js';

const { PROTOCOL_ERROR, STREAM_CLOSED, FLOW_CONTROL_ERROR, ENHANCE_YOUR_CALM, REFUSED_STREAM } = ERROR_CODE;

// Violations of stream rules by the peer, which end the connection or one stream.

export const TOO_MANY_RESETS = new ConnectionFailure(ENHANCE_YOUR_CALM, 'the peer reset too many streams');
export const DATA_BEYOND_WINDOW = new ConnectionFailure(
  FLOW_CONTROL_ERROR,
  'the peer sent more DATA than the connection window allows',
);
export const WINDOW_OVERFLOW = new ConnectionFailure(
  FLOW_CONTROL_ERROR,
  'the peer made the connection window larger than 2^31-1',
);
export const SETTINGS_OVERFLOW = new ConnectionFailure(
  FLOW_CONTROL_ERROR,
  'SETTINGS_INITIAL_WINDOW_SIZE made a stream window larger than 2^31-1',
);
export const HEADERS_WHEN_CLOSED = new ConnectionFailure(
  STREAM_CLOSED,
  'the peer sent HEADERS on a closed stream',
);
export const IDLE_STREAM = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent a frame on a stream that it never opened',
);

export const REFUSED = new StreamFailure(REFUSED_STREAM, 'the peer opened more streams than allowed');
export const ENDED = new StreamFailure(STREAM_CLOSED, 'the peer sent a frame on a stream that it had ended');
export const SELF_DEPENDENT = new StreamFailure(PROTOCOL_ERROR, 'the peer made a stream depend on itself');
export const MALFORMED = new StreamFailure(PROTOCOL_ERROR, 'the peer sent a malformed request');
export const OPEN_TRAILERS = new StreamFailure(
  PROTOCOL_ERROR,
  'the peer sent trailers that do not end the stream',
);
export const LARGE_TRAILERS = new StreamFailure(
  ENHANCE_YOUR_CALM,
  'the peer sent trailers that are larger than allowed',
);
export const WRONG_LENGTH = new StreamFailure(
  PROTOCOL_ERROR,
  'the peer sent a body whose length differs from content-length',
);
export const STREAM_BEYOND_WINDOW = new StreamFailure(
  FLOW_CONTROL_ERROR,
  'the peer sent more DATA than the stream window allows',
);
export const STREAM_OVERFLOW = new StreamFailure(
  FLOW_CONTROL_ERROR,
  'the peer made a stream window larger than 2^31-1',
);
