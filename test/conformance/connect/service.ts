import { setTimeout as delay } from 'node:timers/promises';
import type { Fields, GenericCall, GenericMethod } from '../../../src/grpc/generic-method.js';
import { GrpcError, type StatusCode } from '../../../src/grpc/grpc-server.js';
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

/** A call with messages instead of bytes. */
class Call {
  cancelled = false;
  /** Resumes {@link send}. */
  wake = (): void => {};
  readonly bytes: GenericCall;
  readonly #method: string;
  readonly #messages: ConformanceMessages;

  constructor(bytes: GenericCall, method: string, messages: ConformanceMessages) {
    this.bytes = bytes;
    this.#method = method;
    this.#messages = messages;
  }

  /** Resolves when the caller has read the answer, or has disconnected. */
  async send(payload: Payload): Promise<void> {
    const sent = this.bytes.send(this.#definition.responseSerialize({ payload }));
    if (!sent && !this.cancelled) await new Promise<void>((resolve) => (this.wake = resolve));
  }

  /** The part of an answer that describes a request. */
  pack(request: object): AnyMessage {
    return {
      type_url: `type.googleapis.com/connectrpc.conformance.v1.${this.#method}Request`,
      value: this.#definition.requestSerialize(request),
    };
  }

  get #definition() {
    const definition = this.#messages.service[this.#method];
    if (definition === undefined) throw new Error(`no method ${this.#method}`);
    return definition;
  }
}

/** The service that connectconformance calls. Every request describes its answer. */
export function conformanceMethods(messages: ConformanceMessages): GenericMethod[] {
  const served = Object.entries(messages.service).filter(([name]) => name !== 'Unimplemented');
  return served.map(([name, { path, requestStream, responseStream, requestDeserialize }]) => ({
    path,
    requestStream,
    responseStream,
    begin(bytes) {
      const call = new Call(bytes, name, messages);
      const { request, end } = responseStream
        ? answerStream(messages, call, requestStream)
        : answerAtEnd(messages, call);
      return {
        onMessage: (message) => request(requestDeserialize(message)),
        onRequestEnd: end,
        onDrained: () => call.wake(),
        onOver: () => {
          call.cancelled = true;
          call.wake();
        },
      };
    },
  }));
}

/** Handles each request of a call, and the end of the requests. */
interface Answering {
  request(request: object): void;
  end(): void;
}

function answerAtEnd(messages: ConformanceMessages, call: Call): Answering {
  const requests: UnaryRequest[] = [];
  return {
    request: (request) => requests.push(request),
    end: () => void answerOnce(messages, call, requests),
  };
}

function answerStream(messages: ConformanceMessages, call: Call, requestStream: boolean): Answering {
  let stream: AnswerStream | undefined;
  let work = Promise.resolve();
  return {
    request: (request: StreamRequest) => {
      stream ??= new AnswerStream(messages, call, request.response_definition);
      const current = stream;
      current.fullDuplex ||= requestStream && request.full_duplex === true;
      if (!current.fullDuplex) {
        current.requested(request);
        return;
      }
      current.sendHeaders();
      work = work.then(() => {
        current.requested(request);
        // A full-duplex stream ends when no answer is left, even if the client sends further requests.
        return current.hasMore() ? current.sendNext() : current.finish();
      });
    },
    end: () => {
      const current = stream ?? new AnswerStream(messages, call, undefined);
      current.sendHeaders();
      work.then(() => current.finish());
    },
  };
}

/** Answers a call with one answer, after all of its requests. */
async function answerOnce(
  messages: ConformanceMessages,
  call: Call,
  requests: readonly UnaryRequest[],
): Promise<void> {
  const definition: UnaryResponseDefinition | null | undefined = requests[0]?.response_definition;
  if (definition) call.bytes.sendHeaders(toFields(definition.response_headers));
  const info = requestInfo(
    call,
    requests.map((request) => call.pack(request)),
  );
  const trailers = toFields(definition?.response_trailers ?? []);
  if (definition) await delay(definition.response_delay_ms);
  if (definition?.error) {
    endWith(messages, call, definition.error, trailers, info);
    return;
  }
  const data = definition?.response_data;
  void call.send({ ...(data && { data }), request_info: info });
  call.bytes.end(undefined, trailers);
}

/** Answers of one streaming call, in order. */
class AnswerStream {
  fullDuplex = false;
  readonly #messages: ConformanceMessages;
  readonly #call: Call;
  readonly #definition: StreamResponseDefinition | null | undefined;
  #requests: AnyMessage[] = [];
  #sent = 0;
  #headersSent = false;
  #finished = false;

  constructor(
    messages: ConformanceMessages,
    call: Call,
    definition: StreamResponseDefinition | null | undefined,
  ) {
    this.#messages = messages;
    this.#call = call;
    this.#definition = definition;
  }

  sendHeaders(): void {
    if (this.#headersSent || !this.#definition) return;
    this.#headersSent = true;
    this.#call.bytes.sendHeaders(toFields(this.#definition.response_headers));
  }

  /** Records a request for the next answer. */
  requested(request: StreamRequest): void {
    this.#requests.push(this.#call.pack(request));
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
    if (!this.#call.cancelled) await this.#call.send(payload);
  }

  /** Sends the remaining answers, then the status. */
  async finish(): Promise<void> {
    while (this.hasMore()) await this.sendNext();
    if (this.#finished) return;
    this.#finished = true;
    const trailers = toFields(this.#definition?.response_trailers ?? []);
    const error = this.#definition?.error;
    if (!error) {
      this.#call.bytes.end(undefined, trailers);
      return;
    }
    const info = this.#sent === 0 ? requestInfo(this.#call, this.#requests) : undefined;
    endWith(this.#messages, this.#call, error, trailers, info);
  }

  /**
   * The first answer describes the whole request. Later answers of a full-duplex stream describe only the requests
   * since.
   */
  #info(): Pick<Payload, 'request_info'> {
    if (this.#sent === 0) return { request_info: requestInfo(this.#call, this.#requests) };
    if (!this.fullDuplex || this.#requests.length === 0) return {};
    return { request_info: { request_headers: [], requests: this.#requests } };
  }
}

function requestInfo({ bytes }: Call, requests: readonly AnyMessage[]): RequestInfo {
  const headers = new Map<string, string[]>();
  for (let at = 0; at < bytes.fields.length; at += 2) {
    const [name = '', value = ''] = bytes.fields.slice(at, at + 2);
    // Binary values may be joined and padded.
    const values = name.endsWith('-bin') ? value.split(',').map(withoutPadding) : [value];
    headers.set(name, [...(headers.get(name) ?? []), ...values]);
  }
  const timeoutMs = bytes.timeoutMicros / 1000;
  return {
    request_headers: Array.from(headers, ([name, value]) => ({ name, value })),
    ...(Number.isFinite(timeoutMs) && { timeout_ms: Math.max(0, timeoutMs) }),
    requests,
  };
}

function toFields(headers: readonly Header[]): Fields {
  return headers.flatMap(({ name, value }) =>
    value.flatMap((one) => {
      const lower = name.toLowerCase();
      return [lower, lower.endsWith('-bin') ? withoutPadding(one) : one];
    }),
  );
}

function withoutPadding(base64: string): string {
  return base64.trim().replace(/=+$/, '');
}

/** Ends the call with the status that a request asked for; `info` joins its details. */
function endWith(
  messages: ConformanceMessages,
  call: Call,
  error: ErrorDefinition,
  trailers: Fields,
  info: RequestInfo | undefined,
): void {
  const code = messages.codes.get(error.code) ?? 2;
  const message = error.message ?? '';
  const all = info === undefined ? error.details : [...error.details, messages.packRequestInfo(info)];
  const details = withoutPadding(messages.encodeStatus(code, message, all).toString('base64'));
  call.bytes.end(new GrpcError(code as StatusCode, message), [
    ...trailers,
    'grpc-status-details-bin',
    details,
  ]);
}
