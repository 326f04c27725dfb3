import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { MAX_INFORMATIONAL } from './bounded-request.js';

/** The calls of @grpc/grpc-js 1.14.7, each of which gets its HTTP/2 stream as the first argument. */
interface SubchannelCalls {
  Http2SubchannelCall: new (stream: ClientHttp2Stream, ...rest: never[]) => object;
}

/** Most bytes a second on one connection beside those of messages: headers, and frames that say nothing. */
export const MAX_EMPTY_BYTES = 1024 * 1024;
const SECOND_MS = 1000;

let isBounded = false;
/** The bytes of messages that came on a connection since it was looked at. */
const messageBytes = new WeakMap<ClientHttp2Session, number>();

/**
 * Ends the connection of a gRPC call of this process on which the server sends more than {@link MAX_INFORMATIONAL}
 * informational answers (1xx) to it, or more than {@link MAX_EMPTY_BYTES} of other frames without messages.
 * @grpc/grpc-js ignores them, for as long as they come, and does not offer its streams openly.
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

/** Counts the messages of a call; once a second, from its first call on, looks what else came on the connection. */
function watch(session: ClientHttp2Session, stream: ClientHttp2Stream): void {
  stream.on('data', ({ length }: Buffer) => {
    messageBytes.set(session, (messageBytes.get(session) ?? 0) + length);
  });
  if (messageBytes.has(session)) return;
  messageBytes.set(session, 0);
  let { bytesRead } = session.socket;
  const timer = setInterval(() => {
    if (session.destroyed) return;
    const came = session.socket.bytesRead - bytesRead;
    bytesRead += came;
    if (came > MAX_EMPTY_BYTES + 2 * (messageBytes.get(session) ?? 0)) session.destroy();
    messageBytes.set(session, 0);
  }, SECOND_MS).unref();
  session.once('close', () => clearInterval(timer));
}
