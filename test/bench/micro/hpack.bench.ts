/*
 * Header blocks of calls and answers (RFC 7541). To run it: `node build/test/bench/micro/hpack.bench.js [part of a name
 * …]`.
 */
import { HpackDecoder } from '../../../src/h2/hpack/decoder.js';
import { HpackEncoder } from '../../../src/h2/hpack/encoder.js';
import { HeaderField } from '../../../src/h2/hpack/header-field.js';
import { callTemplate } from '../load/call-template.js';
import { messageOf } from '../load/policy.js';
import { type MicroCase, runCases } from './measure.js';

const FRAME_HEADER_BYTES = 9;

/** Returns the header blocks of the first call of a connection and of later calls. */
function blocks(): { first: Buffer; later: Buffer } {
  const { first, later, dataBytes } = callTemplate(messageOf(1, 10), 'http', '127.0.0.1:8081');
  const block = (call: Buffer) =>
    call.subarray(FRAME_HEADER_BYTES, call.length - dataBytes - FRAME_HEADER_BYTES);
  return { first: block(first), later: block(later) };
}

const newDecoder = () => new HpackDecoder({ maxTableBytes: 4096, maxListBytes: 65_536 });

const later: MicroCase = () => {
  const decoder = newDecoder();
  const { first, later } = blocks();
  decoder.decode(first, 0, first.length);
  return () => decoder.decode(later, 0, later.length);
};

/** Decodes blocks with a field that changes with each call, such as a trace ID. */
const changing: MicroCase = () => {
  const decoder = newDecoder();
  const { first, later } = blocks();
  decoder.decode(first, 0, first.length);
  // Never-indexed literal, new name: "x-request-id", 8 digits.
  const field = Buffer.concat([
    Buffer.from([0x10, 12]),
    Buffer.from('x-request-id'),
    Buffer.from([8]),
    Buffer.from('00000000'),
  ]);
  const block = Buffer.concat([later, field]);
  return (call) => {
    block.writeUInt32LE(0x30303030 + (call & 0x07070707), block.length - 4);
    decoder.decode(block, 0, block.length);
  };
};

const literals: MicroCase = () => {
  const { first } = blocks();
  return () => newDecoder().decode(first, 0, first.length);
};

const answer: MicroCase = () => {
  const encoder = new HpackEncoder();
  const head = [new HeaderField(':status', '200'), new HeaderField('content-type', 'application/grpc', true)];
  const trailers = [new HeaderField('grpc-status', '0', true)];
  const out = new Uint8Array(encoder.maxLength(head) + encoder.maxLength(trailers));
  return () => encoder.encode(trailers, out, encoder.encode(head, out, 0));
};

runCases(__filename, {
  'decode a call like the one before': later,
  'decode a call with a field that changes': changing,
  'decode the first call, decoder made anew': literals,
  'encode head and trailers of an answer': answer,
});
