import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader';
import { closeLater } from '../process/close-later.js';
import { repositoryRoot } from '../process/tools.js';

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span that the collector received. Ids are hexadecimal; '' if absent. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly attributes: Attributes;
  readonly resource: Attributes;
  /** 0 unset, 1 OK, 2 error. */
  readonly status: number;
  readonly message: string;
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[];
  readonly micros: number;
}

/** Behaviour of a collector: accepts spans, rejects them, or never answers. */
export type Behaviour = 'take' | 'refuse' | 'hang';

/** A minimal OpenTelemetry collector for weir. Close it after use. */
export interface OtlpReceiver {
  /** Value for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly endpoint: string;
  behaviour: Behaviour;
  readonly spans: readonly ReceivedSpan[];
  /** Number of received messages, including rejected ones. */
  readonly messages: number;
  close(): Promise<void>;
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, string | number | boolean>>;
}
interface WireSpan {
  readonly trace_id: Buffer;
  readonly span_id: Buffer;
  readonly parent_span_id: Buffer;
  readonly name: string;
  readonly kind: number;
  readonly start_time_unix_nano: string;
  readonly end_time_unix_nano: string;
  readonly attributes: readonly KeyValue[];
  readonly events: readonly { readonly name: string; readonly attributes: readonly KeyValue[] }[];
  readonly status: { readonly message: string; readonly code: number } | null;
}
interface WireRequest {
  readonly resource_spans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scope_spans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

const definition = loadSync(join(repositoryRoot, 'test/support/otlp/trace.proto'), {
  keepCase: true,
  longs: String,
  defaults: true,
  oneofs: true,
})['opentelemetry.proto.collector.trace.v1.TraceService'] as ServiceDefinition;
const exportMethod = definition['Export'] as ServiceDefinition[string];

function attributesOf(list: readonly KeyValue[]): Attributes {
  return Object.fromEntries(
    list.map(({ key, value }) => {
      const chosen = value[String(value['value'])] as string;
      return [key, value['value'] === 'int_value' ? Number(chosen) : chosen];
    }),
  );
}

function* spansOf(request: WireRequest): Generator<ReceivedSpan> {
  for (const { resource, scope_spans: scopes } of request.resource_spans) {
    for (const span of scopes.flatMap(({ spans }) => spans)) {
      yield {
        traceId: span.trace_id.toString('hex'),
        spanId: span.span_id.toString('hex'),
        parentId: span.parent_span_id.toString('hex'),
        name: span.name,
        kind: span.kind,
        attributes: attributesOf(span.attributes),
        resource: attributesOf(resource.attributes),
        status: span.status?.code ?? 0,
        message: span.status?.message ?? '',
        events: span.events.map(({ name, attributes }) => ({ name, attributes: attributesOf(attributes) })),
        micros: Number((BigInt(span.end_time_unix_nano) - BigInt(span.start_time_unix_nano)) / 1000n),
      };
    }
  }
}

/** Starts a collector on 127.0.0.1. */
export async function startOtlpReceiver(
  protocol: 'http' | 'grpc',
  behaviour: Behaviour = 'take',
): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const receiver = { endpoint: '', behaviour, spans, messages: 0, close: async () => {} };
  closeLater(receiver, () => receiver.close());
  const took = (bytes: Buffer): void => {
    receiver.messages++;
    if (receiver.behaviour === 'take') {
      spans.push(...spansOf(exportMethod.requestDeserialize(bytes) as unknown as WireRequest));
    }
  };
  if (protocol === 'http') {
    const server: HttpServer = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (request.url !== '/v1/traces') {
          response.writeHead(404).end();
          return;
        }
        took(Buffer.concat(chunks));
        if (receiver.behaviour !== 'hang')
          response.writeHead(receiver.behaviour === 'take' ? 200 : 400).end();
      });
    });
    const sockets = new Set<Socket>();
    server.on('connection', (socket) => sockets.add(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    receiver.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    receiver.close = async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    };
    return receiver;
  }
  const server = new Server();
  server.addService(
    { Export: { ...exportMethod, requestDeserialize: (bytes: Buffer) => bytes, originalName: 'export' } },
    {
      Export: (call: { request: Buffer }, callback: (error: object | null, answer?: object) => void) => {
        took(call.request);
        if (receiver.behaviour === 'take') callback(null, {});
        else if (receiver.behaviour === 'refuse') callback({ code: 3, details: 'refused' });
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  receiver.endpoint = `http://127.0.0.1:${port}`;
  receiver.close = async () => server.forceShutdown();
  return receiver;
}
