import { join } from 'node:path';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import { repositoryRoot } from '../../support/process/tools.js';

/** connectrpc.conformance.v1.Header; values of `…-bin` are base64. */
export interface Header {
  readonly name: string;
  readonly value: readonly string[];
}

/** google.protobuf.Any */
export interface AnyMessage {
  readonly type_url: string;
  readonly value: Uint8Array;
}

export interface ErrorDefinition {
  readonly code: string;
  readonly message?: string;
  readonly details: readonly AnyMessage[];
}

/** UnaryResponseDefinition, with the fields that servers use. */
export interface UnaryResponseDefinition {
  readonly response_headers: readonly Header[];
  readonly response_trailers: readonly Header[];
  readonly response?: 'response_data' | 'error';
  readonly response_data?: Buffer;
  readonly error?: ErrorDefinition;
  readonly response_delay_ms: number;
}

/** StreamResponseDefinition, with the fields that servers use. */
export interface StreamResponseDefinition {
  readonly response_headers: readonly Header[];
  readonly response_trailers: readonly Header[];
  readonly response_data: readonly Buffer[];
  readonly error?: ErrorDefinition | null;
  readonly response_delay_ms: number;
}

export interface UnaryRequest {
  readonly response_definition?: UnaryResponseDefinition | null;
}

export interface StreamRequest {
  readonly response_definition?: StreamResponseDefinition | null;
  readonly full_duplex?: boolean;
}

/** ConformancePayload.RequestInfo: the request as the server received it. */
export interface RequestInfo {
  readonly request_headers: readonly Header[];
  readonly timeout_ms?: number;
  readonly requests: readonly AnyMessage[];
}

export interface Payload {
  readonly data?: Uint8Array;
  readonly request_info?: RequestInfo;
}

export interface ServerCompatRequest {
  readonly use_tls: boolean;
  readonly client_tls_cert: Buffer;
  readonly message_receive_limit: number;
  readonly server_creds?: { readonly cert: Buffer; readonly key: Buffer } | null;
}

export interface ServerCompatResponse {
  readonly host: string;
  readonly port: number;
  readonly pem_cert: Uint8Array;
}

const PACKAGE = 'connectrpc.conformance.v1';
const LENGTH_BYTES = 4;
/**
 * An unknown field (number 15, bytes), by the length of a message modulo 3. Adding it makes the length a multiple of 3.
 */
const UNKNOWN_FIELDS = [Buffer.alloc(0), Buffer.from([0x7a, 0]), Buffer.from([0x7a, 2, 0, 0])];

/** Messages between connectconformance and a server under test, loaded from the protos of the program's version. */
export class ConformanceMessages {
  readonly service: ServiceDefinition;
  /** Codes by name: `CODE_CANCELED` is 1. */
  readonly codes: ReadonlyMap<string, number>;
  readonly #payload: MessageTypeDefinition<Payload, Payload>;
  readonly #status: MessageTypeDefinition<object, object>;
  readonly #request: MessageTypeDefinition<ServerCompatRequest, ServerCompatRequest>;
  readonly #wholeTriples: boolean;
  readonly #response: MessageTypeDefinition<ServerCompatResponse, ServerCompatResponse>;

  /**
   * `protoFolder` contains `connectrpc/conformance/v1/`. With `wholeTriples`, the length of an encoded status is a
   * multiple of 3, so that base64 needs no padding. @grpc/grpc-js sends padding, which connectconformance rejects
   * before it checks the rest.
   */
  constructor(protoFolder: string, wholeTriples: boolean) {
    this.#wholeTriples = wholeTriples;
    const own = join(repositoryRoot, 'test/conformance/connect');
    const files = [
      'connectrpc/conformance/v1/service.proto',
      'connectrpc/conformance/v1/server_compat.proto',
      'status.proto',
    ];
    const loaded = loadSync(files, {
      includeDirs: [protoFolder, own],
      keepCase: true,
      enums: String,
      longs: Number,
      defaults: true,
      oneofs: true,
    });
    const member = <T>(name: string) => loaded[name] as unknown as T;
    this.service = member(`${PACKAGE}.ConformanceService`);
    this.#payload = member(`${PACKAGE}.ConformancePayload`);
    this.#status = member('google.rpc.Status');
    this.#request = member(`${PACKAGE}.ServerCompatRequest`);
    this.#response = member(`${PACKAGE}.ServerCompatResponse`);
    const { type } = member<{ type: { value: readonly { name: string; number: number }[] } }>(
      `${PACKAGE}.Code`,
    );
    this.codes = new Map(type.value.map(({ name, number }) => [name, number]));
  }

  decodeRequest(bytes: Buffer): ServerCompatRequest {
    return this.#request.deserialize(bytes);
  }

  /** Returns the response with a length prefix. */
  encodeResponse(response: ServerCompatResponse): Buffer {
    const message = this.#response.serialize(response);
    const framed = Buffer.alloc(LENGTH_BYTES + message.length);
    framed.writeUInt32BE(message.length);
    framed.set(message, LENGTH_BYTES);
    return framed;
  }

  packRequestInfo(info: RequestInfo): AnyMessage {
    // proto-loader has no codec for a nested message, so encode the message around it, with this field only, and cut it
    // out.
    const around = this.#payload.serialize({ request_info: info });
    let start = 1;
    while ((around[start] ?? 0) >= 0x80) start += 1;
    return {
      type_url: `type.googleapis.com/${PACKAGE}.ConformancePayload.RequestInfo`,
      value: around.subarray(start + 1),
    };
  }

  encodeStatus(code: number, message: string, details: readonly AnyMessage[]): Buffer {
    const bytes = this.#status.serialize({ code, message, details });
    return this.#wholeTriples ? Buffer.concat([bytes, UNKNOWN_FIELDS[bytes.length % 3] as Buffer]) : bytes;
  }
}

/** Reads one message with a length prefix. */
export async function readFramed(input: AsyncIterable<Buffer>): Promise<Buffer> {
  let received = Buffer.alloc(0);
  for await (const chunk of input) {
    received = Buffer.concat([received, chunk]);
    if (received.length < LENGTH_BYTES) continue;
    const end = LENGTH_BYTES + received.readUInt32BE();
    if (received.length >= end) return received.subarray(LENGTH_BYTES, end);
  }
  throw new Error('the input ended inside a message');
}
