import type { BodyWriter } from '../../../src/h2/request-handler.js';

/** Returns the writer of a body that consists of `parts`. */
export function bytesBody(...parts: readonly Uint8Array[]): BodyWriter {
  const body = Buffer.concat(parts);
  return {
    maxLength: body.length,
    writeBefore(bytes, end) {
      bytes.set(body, end - body.length);
      return end - body.length;
    },
  };
}
