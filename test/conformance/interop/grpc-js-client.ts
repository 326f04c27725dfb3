/*
 * Calls weir as a service with @grpc/grpc-js would, and prints the results as JSON in the format of interop-report.ts:
 * `node grpc-js-client.js ADDRESS [CA CERTIFICATE KEY]`. The clients in grpc-go/ and python/ take the same arguments.
 */
import { readFileSync } from 'node:fs';
import {
  type ChannelCredentials,
  Client,
  credentials,
  type MethodDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { service as healthService } from 'grpc-health-check';
import { assetPath } from '../../../src/runtime/assets.js';
import type { Decision, Failure, InteropReport } from './interop-report.js';

interface RlsResponse {
  readonly overall_code: string;
  readonly statuses: readonly {
    readonly current_limit: { readonly requests_per_unit: number } | null;
    readonly limit_remaining: number;
  }[];
  readonly response_headers_to_add: readonly { readonly key: string; readonly value: string }[];
}
interface ListedServices {
  readonly list_services_response: { readonly service: readonly { readonly name: string }[] };
}
type HealthMethod = MethodDefinition<object, { readonly status: string }>;

const BURST_SIZE = 200;
const TIMEOUT_MS = 30_000;
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
const OPTIONS = { keepCase: true, enums: String, longs: Number, defaults: true };

function channelCredentials([ca, certificate, key]: readonly string[]): ChannelCredentials {
  if (ca === undefined || certificate === undefined || key === undefined) return credentials.createInsecure();
  return credentials.createSsl(readFileSync(ca), readFileSync(key), readFileSync(certificate));
}

function loadMethod<T>(
  folder: string,
  file: string,
  service: string,
  method: string,
): MethodDefinition<object, T> {
  const loaded = loadSync(file, { ...OPTIONS, includeDirs: [folder] });
  return (loaded[service] as unknown as Record<string, MethodDefinition<object, T>>)[
    method
  ] as MethodDefinition<object, T>;
}

function requestOf(key: string, value: string): object {
  return { domain: 'interop', descriptors: [{ entries: [{ key, value }] }] };
}

async function failureOf(call: Promise<unknown>): Promise<Failure> {
  try {
    await call;
    return { status: 0, message: '' };
  } catch (error) {
    const { code, details } = error as ServiceError;
    return { status: code, message: details };
  }
}

class InteropClient {
  readonly #client: Client;
  readonly #shouldRateLimit: MethodDefinition<object, RlsResponse>;

  constructor(address: string, channel: ChannelCredentials) {
    this.#shouldRateLimit = loadMethod<RlsResponse>(
      assetPath('proto'),
      'envoy/service/ratelimit/v3/rls.proto',
      SERVICE,
      'ShouldRateLimit',
    );
    // The server's name in the handshake may not be an address.
    this.#client = new Client(address, channel, { 'grpc.ssl_target_name_override': 'localhost' });
  }

  unary<T>(method: MethodDefinition<object, T>, request: object, path = method.path): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        { deadline: Date.now() + TIMEOUT_MS },
        (error: ServiceError | null, answer?: T) => (error === null ? resolve(answer as T) : reject(error)),
      );
    });
  }

  ask(request: object, path?: string): Promise<RlsResponse> {
    return this.unary(this.#shouldRateLimit, request, path);
  }

  async decide(key: string, value: string): Promise<Decision> {
    const answer = await this.ask(requestOf(key, value));
    const [status] = answer.statuses;
    if (status === undefined || answer.statuses.length !== 1) throw new Error('not one status');
    return {
      code: answer.overall_code,
      limit: status.current_limit?.requests_per_unit ?? 0,
      remaining: status.limit_remaining,
      headers: Object.fromEntries(answer.response_headers_to_add.map(({ key, value }) => [key, value])),
    };
  }

  async burst(): Promise<InteropReport['burst']> {
    const answers = await Promise.all(
      Array.from({ length: BURST_SIZE }, () => this.ask(requestOf('tenant', 'grpc-js-burst'))),
    );
    const ok = answers.filter((answer) => answer.overall_code === 'OK').length;
    return { ok, overLimit: BURST_SIZE - ok };
  }

  listServices(): Promise<string[]> {
    const method = loadMethod<ListedServices>(
      assetPath('proto'),
      'grpc/reflection/v1/reflection.proto',
      'grpc.reflection.v1.ServerReflection',
      'ServerReflectionInfo',
    );
    return new Promise((resolve, reject) => {
      const call = this.#client.makeBidiStreamRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
      );
      call.on('error', reject);
      call.on('data', (answer: ListedServices) => {
        resolve(answer.list_services_response.service.map(({ name }) => name).sort());
        call.end();
      });
      call.write({ list_services: '' });
    });
  }

  async health(): Promise<InteropReport['health']> {
    const check = healthService['Check'] as unknown as HealthMethod;
    const watch = healthService['Watch'] as unknown as HealthMethod;
    const { status } = await this.unary(check, { service: '' });
    const unknown = await failureOf(this.unary(check, { service: 'other' }));
    const seen: string[] = [];
    const watchEnd = await new Promise<number>((resolve) => {
      const call = this.#client.makeServerStreamRequest(
        watch.path,
        watch.requestSerialize,
        watch.responseDeserialize,
        { service: '' },
      );
      call.on('data', (answer: { readonly status: string }) => {
        if (seen.push(answer.status) === 1) process.stdout.write('watching\n');
      });
      call.on('error', () => {});
      call.on('status', ({ code }) => resolve(code));
    });
    return { check: status, unknown: unknown.status, watch: seen, watchEnd };
  }

  close(): void {
    this.#client.close();
  }
}

async function main(address: string, ...files: readonly string[]): Promise<void> {
  const client = new InteropClient(address, channelCredentials(files));
  const report: InteropReport = {
    allowed: await client.decide('tenant', 'grpc-js'),
    denied: await client.decide('closed', 'grpc-js'),
    error: await failureOf(client.ask({})),
    unknownMethod: await failureOf(client.ask({}, `/${SERVICE}/Other`)),
    burst: await client.burst(),
    services: await client.listServices(),
    health: await client.health(),
  };
  process.stdout.write(`${JSON.stringify(report)}\n`);
  client.close();
}

const [, , address = '', ...files] = process.argv;
main(address, ...files).catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
