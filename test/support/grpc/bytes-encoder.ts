import type { MessageEncoder } from '../../../src/grpc/grpc-server.js';

/** The encoder of methods whose responses are bytes. */
export const BYTES: MessageEncoder<Uint8Array> = {
  maxLength: ({ length }) => length,
  writeBefore(response, bytes, end) {
    bytes.set(response, end - response.length);
    return end - response.length;
  },
};
