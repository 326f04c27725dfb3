import { setTimeout as delay } from 'node:timers/promises';
import {
  Metadata,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type {
  AnyMessage,
  ConformanceMessages,
  ErrorDefinition,
  Header,
  Payload,
  RequestInfo,
  StreamRequest,
  StreamResponseDefinition,
  UnaryRequest,
  UnaryResponseDefinition,
} from './messages.js';

interface Answer {
  readonly payload: Payload;
}
type UnaryCall = ServerUnaryCall<UnaryRequest, Answer> | ServerReadableStream<UnaryRequest, Answer>;
type StreamCall = ServerWritableStream<StreamRequest, Answer> | ServerDuplexStream<StreamRequest, Answer>;

/** The service that connectconformance calls: every request says how it is to be answered. */
export function conformanceService(messages: ConformanceMessages): UntypedServiceImplementation {
  return {
    Unary: (call: ServerUnaryCall<UnaryRequest, Answer>, callback: sendUnaryData<Answer>) =>
      answerOnce(messages, 'Unary', call, [call.request], callback),
    IdempotentUnary: (call: ServerUnaryCall<UnaryRequest, Answer>, callback: sendUnaryData<Answer>) =>
      answerOnce(messages, 'IdempotentUnary', call, [call.request], callback),
    ClientStream: (call: ServerReadableStream<UnaryRequest, Answer>, callback: sendUnaryData<Answer>) => {
      const requests: UnaryRequest[] = [];
      call.on('data', (request: UnaryRequest) => requests.push(request));
      call.on('error', () => {});
      call.on('end', () => answerOnce(messages, 'ClientStream', call, requests, callback));
    },
    ServerStream: (call: ServerWritableStream<StreamRequest, Answer>) => {
      const stream = new AnswerStream(messages, 'ServerStream', call, call.request.response_definition);
      stream.sendHeaders();
      stream.requested(call.request);
      void stream.finish();
    },
    BidiStream: (call: ServerDuplexStream<StreamRequest, Answer>) => {
      let stream: AnswerStream | undefined;
      let work = Promise.resolve();
      call.on('data', (request: StreamRequest) => {
        stream ??= new AnswerStream(messages, 'BidiStream', call, request.response_definition);
        const current = stream;
        if (request.full_duplex === true || current.fullDuplex) {
          current.fullDuplex = true;
          current.sendHeaders();
          work = work.then(() => {
            current.requested(request);
            // With nothing left to answer a full-duplex stream ends at once, whatever the client still sends.
            return current.hasMore() ? current.sendNext() : current.finish();
          });
        } else {
          current.requested(request);
        }
      });
      call.on('error', () => {});
      call.on('end', () => {
        const current = stream ?? new AnswerStream(messages, 'BidiStream', call, undefined);
        current.sendHeaders();
        work.then(() => current.finish());
      });
    },
  };
}

/** Answers a call that has one answer, after all of its requests. */
async function answerOnce(
  messages: ConformanceMessages,
  method: string,
  call: UnaryCall,
  requests: readonly UnaryRequest[],
  callback: sendUnaryData<Answer>,
): Promise<void> {
  const definition: UnaryResponseDefinition | null | undefined = requests[0]?.response_definition;
  if (definition) call.sendMetadata(toMetadata(definition.response_headers));
  const info = requestInfo(
    call,
    requests.map((request) => pack(messages, method, request)),
  );
  const trailers = toMetadata(definition?.response_trailers ?? []);
  if (definition) await delay(definition.response_delay_ms);
  if (definition?.error) {
    callback(statusOf(messages, definition.error, trailers, info));
    return;
  }
  const data = definition?.response_data;
  callback(null, { payload: { ...(data && { data }), request_info: info } }, trailers);
}

/** The answers of one streaming call, in order. */
class AnswerStream {
  fullDuplex = false;
  readonly #messages: ConformanceMessages;
  readonly #method: string;
  readonly #call: StreamCall;
  readonly #definition: StreamResponseDefinition | null | undefined;
  #requests: AnyMessage[] = [];
  #sent = 0;
  #headersSent = false;
  #finished = false;

  constructor(
    messages: ConformanceMessages,
    method: string,
    call: StreamCall,
    definition: StreamResponseDefinition | null | undefined,
  ) {
    this.#messages = messages;
    this.#method = method;
    this.#call = call;
    this.#definition = definition;
  }

  sendHeaders(): void {
    if (this.#headersSent || !this.#definition) return;
    this.#headersSent = true;
    this.#call.sendMetadata(toMetadata(this.#definition.response_headers));
  }

  /** Remembers a request, for the next answer to tell. */
  requested(request: StreamRequest): void {
    this.#requests.push(pack(this.#messages, this.#method, request));
  }

  hasMore(): boolean {
    return this.#sent < (this.#definition?.response_data.length ?? 0);
  }

  async sendNext(): Promise<void> {
    const data = this.#definition?.response_data[this.#sent];
    if (data === undefined || this.#finished) return;
    await delay(this.#definition?.response_delay_ms ?? 0);
    const payload: Payload = { data, ...this.#info() };
    this.#sent += 1;
    this.#requests = [];
    if (!this.#call.cancelled) this.#call.write({ payload });
  }

  /** Sends the answers that are left, then the status. */
  async finish(): Promise<void> {
    while (this.hasMore()) await this.sendNext();
    if (this.#finished) return;
    this.#finished = true;
    const trailers = toMetadata(this.#definition?.response_trailers ?? []);
    const error = this.#definition?.error;
    if (!error) {
      this.#call.end(trailers);
      return;
    }
    const info = this.#sent === 0 ? requestInfo(this.#call, this.#requests) : undefined;
    this.#call.emit('error', statusOf(this.#messages, error, trailers, info));
  }

  /** The first answer tells all about the request; later ones of a full-duplex stream only the requests since. */
  #info(): Pick<Payload, 'request_info'> {
    if (this.#sent === 0) return { request_info: requestInfo(this.#call, this.#requests) };
    if (!this.fullDuplex || this.#requests.length === 0) return {};
    return { request_info: { request_headers: [], requests: this.#requests } };
  }
}

function pack(messages: ConformanceMessages, method: string, request: object): AnyMessage {
  const definition = messages.service[method];
  if (definition === undefined) throw new Error(`no method ${method}`);
  return {
    type_url: `type.googleapis.com/connectrpc.conformance.v1.${method}Request`,
    value: definition.requestSerialize(request),
  };
}

function requestInfo(call: UnaryCall | StreamCall, requests: readonly AnyMessage[]): RequestInfo {
  const deadline = call.getDeadline();
  return {
    request_headers: Object.keys(call.metadata.getMap()).map((name) => ({
      name,
      value: call.metadata
        .get(name)
        .map((value) => (typeof value === 'string' ? value : value.toString('base64').replace(/=+$/, ''))),
    })),
    ...(Number.isFinite(Number(deadline)) && { timeout_ms: Math.max(0, Number(deadline) - Date.now()) }),
    requests,
  };
}

function toMetadata(headers: readonly Header[]): Metadata {
  const metadata = new Metadata();
  for (const { name, value } of headers) {
    for (const one of value) {
      metadata.add(name, name.toLowerCase().endsWith('-bin') ? Buffer.from(one, 'base64') : one);
    }
  }
  return metadata;
}

/** The status that a request asked for; `info` joins its details. */
function statusOf(
  messages: ConformanceMessages,
  error: ErrorDefinition,
  trailers: Metadata,
  info: RequestInfo | undefined,
): StatusObject {
  const code = messages.codes.get(error.code) ?? 2;
  const details = error.message ?? '';
  const all = info === undefined ? error.details : [...error.details, messages.packRequestInfo(info)];
  trailers.set('grpc-status-details-bin', messages.encodeStatus(code, details, all));
  return { code, details, metadata: trailers };
}
