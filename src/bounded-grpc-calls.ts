import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { MAX_INFORMATIONAL } from './bounded-request.js';

/** The call methods of @grpc/grpc-js 1.14.7, which get the HTTP/2 stream as their first argument. */
interface SubchannelCalls {
  Http2SubchannelCall: new (stream: ClientHttp2Stream, ...rest: never[]) => object;
}

/** Maximum number of bytes per second on a connection that do not belong to messages: headers and empty frames. */
export const MAX_EMPTY_BYTES = 1024 * 1024;
const SECOND_MS = 1000;

let isBounded = false;
/** Number of message bytes received on each connection since the last check. */
const messageBytes = new WeakMap<ClientHttp2Session, number>();

/**
 * Closes the connection of a gRPC call of this process if the server sends more than {@link MAX_INFORMATIONAL}
 * informational answers (1xx), or more than {@link MAX_EMPTY_BYTES} per second of frames without messages. The library
 * @grpc/grpc-js ignores such frames without a limit, and does not expose its streams.
 */
export function boundGrpcCalls(): void {
  if (isBounded) return;
  isBounded = true;
  const calls = require('@grpc/grpc-js/build/src/subchannel-call.js') as Partial<SubchannelCalls>;
  const { Http2SubchannelCall: Call } = calls;
  if (Call === undefined)
    throw new Error(
      'the installed version of @grpc/grpc-js has no Http2SubchannelCall; install version 1.14.7',
    );
  calls.Http2SubchannelCall = class extends Call {
    constructor(stream: ClientHttp2Stream, ...rest: never[]) {
      super(stream, ...rest);
      const { session } = stream;
      if (session !== undefined && !session.destroyed) watch(session as ClientHttp2Session, stream);
      let informational = 0;
      stream.on('headers', () => {
        informational++;
        if (informational > MAX_INFORMATIONAL) stream.session?.destroy();
      });
    }
  };
}

/**
 * Counts the message bytes of a call. Checks once a second, from the first call on, how many other bytes the connection
 * received.
 */
function watch(session: ClientHttp2Session, stream: ClientHttp2Stream): void {
  stream.on('data', ({ length }: Buffer) => {
    messageBytes.set(session, (messageBytes.get(session) ?? 0) + length);
  });
  if (messageBytes.has(session)) return;
  messageBytes.set(session, 0);
  let { bytesRead } = session.socket;
  const timer = setInterval(() => {
    if (session.destroyed) return;
    const receivedBytes = session.socket.bytesRead - bytesRead;
    bytesRead += receivedBytes;
    if (receivedBytes > MAX_EMPTY_BYTES + 2 * (messageBytes.get(session) ?? 0)) session.destroy();
    messageBytes.set(session, 0);
  }, SECOND_MS).unref();
  session.once('close', () => clearInterval(timer));
}
