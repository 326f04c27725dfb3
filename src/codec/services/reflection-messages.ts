import { MAX_BYTES_PER_UNIT, type WireWriter } from '../wire-writer.js';
import { FIELD_HEAD_BYTES, ServiceReader, writeMessage } from './service-reader.js';

/** The query of a ServerReflectionRequest. */
export type ReflectionQuery =
  | { readonly kind: 'file'; readonly name: string }
  | { readonly kind: 'symbol'; readonly name: string }
  | { readonly kind: 'extension'; readonly type: string; readonly number: number }
  | { readonly kind: 'extensions'; readonly type: string }
  | { readonly kind: 'services' }
  | { readonly kind: 'none' };

/** grpc.reflection.v1.ServerReflectionRequest. The message of v1alpha has the same encoding. */
export interface ReflectionRequest {
  readonly host: string;
  readonly question: ReflectionQuery;
  /** The encoded request, which the response repeats. */
  readonly bytes: Uint8Array;
}

/** The answer of a ServerReflectionResponse. Files are encoded FileDescriptorProtos. */
export type ReflectionAnswer =
  | { readonly kind: 'files'; readonly files: readonly Uint8Array[] }
  | { readonly kind: 'services'; readonly names: readonly string[] }
  | { readonly kind: 'error'; readonly code: number; readonly message: string };

// Tags of ServerReflectionRequest: field number * 8 + wire type.
const HOST = 0x0a;
const FILE_BY_FILENAME = 0x1a;
const FILE_CONTAINING_SYMBOL = 0x22;
const FILE_CONTAINING_EXTENSION = 0x2a;
const ALL_EXTENSION_NUMBERS_OF_TYPE = 0x32;
const LIST_SERVICES = 0x3a;
// Tags of ExtensionRequest.
const CONTAINING_TYPE = 0x0a;
const EXTENSION_NUMBER = 0x10;
// Tags of ServerReflectionResponse and its member messages.
const VALID_HOST = 0x0a;
const ORIGINAL_REQUEST = 0x12;
const FILE_DESCRIPTOR_RESPONSE = 0x22;
const LIST_SERVICES_RESPONSE = 0x32;
const ERROR_RESPONSE = 0x3a;
const FIRST_TEXT_OR_MESSAGE = 0x0a;
const ERROR_CODE = 0x08;
const ERROR_MESSAGE = 0x12;

/**
 * Decodes a ServerReflectionRequest. If it contains several queries, the last one counts. Throws DecodeError if the
 * bytes are invalid.
 */
export function decodeReflectionRequest(bytes: Uint8Array): ReflectionRequest {
  const reader = new ServiceReader(bytes);
  let host = '';
  let question: ReflectionQuery = { kind: 'none' };
  reader.forEachField((tag, end) => {
    if (tag === HOST) host = reader.text(end);
    else if (tag === FILE_BY_FILENAME) question = { kind: 'file', name: reader.text(end) };
    else if (tag === FILE_CONTAINING_SYMBOL) question = { kind: 'symbol', name: reader.text(end) };
    else if (tag === FILE_CONTAINING_EXTENSION) question = readExtension(reader, reader.messageEnd(end));
    else if (tag === ALL_EXTENSION_NUMBERS_OF_TYPE) question = { kind: 'extensions', type: reader.text(end) };
    else if (tag === LIST_SERVICES) {
      reader.text(end);
      question = { kind: 'services' };
    } else return false;
    return true;
  });
  return { host, question, bytes };
}

function readExtension(reader: ServiceReader, end: number): ReflectionQuery {
  let type = '';
  let number = 0;
  reader.forEachField((tag) => {
    if (tag === CONTAINING_TYPE) type = reader.text(end);
    else if (tag === EXTENSION_NUMBER) number = reader.int32(end);
    else return false;
    return true;
  }, end);
  return { kind: 'extension', type, number };
}

/** Encodes the ServerReflectionResponse to `request`. */
export function encodeReflectionResponse(
  { host, bytes }: ReflectionRequest,
  answer: ReflectionAnswer,
): Buffer {
  const head = 4 * FIELD_HEAD_BYTES + host.length * MAX_BYTES_PER_UNIT + bytes.length;
  return writeMessage(head + maxEncodedBytes(answer), (writer) => {
    writeAnswer(writer, answer);
    writer.bytesField(ORIGINAL_REQUEST, bytes);
    writer.textField(VALID_HOST, host);
  });
}

function writeAnswer(writer: WireWriter, answer: ReflectionAnswer): void {
  const { position } = writer;
  if (answer.kind === 'files') {
    for (const file of [...answer.files].reverse()) writer.bytesField(FIRST_TEXT_OR_MESSAGE, file);
    writer.lengthSince(position, FILE_DESCRIPTOR_RESPONSE);
  } else if (answer.kind === 'services') {
    for (const name of [...answer.names].reverse()) {
      const service = writer.position;
      writer.textField(FIRST_TEXT_OR_MESSAGE, name);
      writer.lengthSince(service, FIRST_TEXT_OR_MESSAGE);
    }
    writer.lengthSince(position, LIST_SERVICES_RESPONSE);
  } else {
    writer.textField(ERROR_MESSAGE, answer.message);
    writer.numberField(ERROR_CODE, answer.code);
    writer.lengthSince(position, ERROR_RESPONSE);
  }
}

function maxEncodedBytes(answer: ReflectionAnswer): number {
  if (answer.kind === 'files') {
    return answer.files.reduce((sum, { length }) => sum + length + FIELD_HEAD_BYTES, 0);
  }
  const texts = answer.kind === 'services' ? answer.names : [answer.message];
  return texts.reduce((sum, { length }) => sum + length * MAX_BYTES_PER_UNIT + 2 * FIELD_HEAD_BYTES, 0);
}
