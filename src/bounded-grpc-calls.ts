import type { ClientHttp2Stream } from 'node:http2';
import { MAX_INFORMATIONAL } from './bounded-request.js';

/** The calls of @grpc/grpc-js 1.14.7, each of which gets its HTTP/2 stream as the first argument. */
interface SubchannelCalls {
  Http2SubchannelCall: new (stream: ClientHttp2Stream, ...rest: never[]) => object;
}

let isBounded = false;

/**
 * Ends the connection of a gRPC call of this process on which the server sends more than {@link MAX_INFORMATIONAL}
 * informational answers (1xx). @grpc/grpc-js ignores them, for as long as they come, and does not offer its streams
 * openly.
 */
export function boundGrpcCalls(): void {
  if (isBounded) return;
  isBounded = true;
  const calls = require('@grpc/grpc-js/build/src/subchannel-call.js') as Partial<SubchannelCalls>;
  const { Http2SubchannelCall: Call } = calls;
  if (Call === undefined)
    throw new Error('this @grpc/grpc-js has no Http2SubchannelCall; version 1.14.7 is needed');
  calls.Http2SubchannelCall = class extends Call {
    constructor(stream: ClientHttp2Stream, ...rest: never[]) {
      super(stream, ...rest);
      let informational = 0;
      stream.on('headers', () => {
        informational++;
        if (informational > MAX_INFORMATIONAL) stream.session?.destroy();
      });
    }
  };
}
