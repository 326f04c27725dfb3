import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { assetPath } from '../../assets.js';
import { FieldCounter } from './field-count.js';
import type { Message } from './rate-limit-config.js';

/** The resources that weir asks a management server for. */
export const RATE_LIMIT_CONFIG_TYPE = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
/** HTTP/2 path of the one method of ADS (proto/envoy/service/discovery/v3/ads.proto). */
export const STREAM_PATH = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';

/** google.protobuf.Any. */
export interface Resource {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

export interface DiscoveryRequest {
  readonly versionInfo: string;
  readonly node: {
    readonly id: string;
    readonly metadata: { readonly fields: Readonly<Record<string, { readonly stringValue: string }>> };
  };
  readonly typeUrl: string;
  readonly responseNonce: string;
  readonly errorDetail?: { readonly code: number; readonly message: string };
}

export interface DiscoveryResponse {
  readonly versionInfo: string;
  readonly resources: readonly Resource[];
  readonly typeUrl: string;
  readonly nonce: string;
}

/** As proto-loader gives it: protobufjs brings its own text of Any, whose names are as they stand there. */
interface LoadedResponse extends Omit<DiscoveryResponse, 'resources'> {
  readonly resources: readonly { readonly type_url: string; readonly value: Uint8Array }[];
}

/** Both ends of what goes over the wire. Decoding throws for bytes that are no such message. */
export interface DiscoveryCodec {
  encodeRequest(request: DiscoveryRequest): Buffer;
  decodeResponse(bytes: Uint8Array): DiscoveryResponse;
  /** A ratelimit.config.ratelimit.v3.RateLimitConfig; fields are named as in its proto file. */
  decodeConfig(bytes: Uint8Array): Message;
  /** How many fields such a message has; see {@link FieldCounter}. */
  countFields(bytes: Uint8Array, most: number): number;
}

const CONFIG = 'ratelimit.config.ratelimit.v3.RateLimitConfig';
const DESCRIPTOR = 'ratelimit.config.ratelimit.v3.RateLimitDescriptor';

/** Reads `proto/`, so make one per process. Throws when the build is incomplete. */
export function createDiscoveryCodec(): DiscoveryCodec {
  const definition = loadSync('envoy/service/discovery/v3/discovery.proto', {
    includeDirs: [assetPath('proto')],
    longs: Number,
    defaults: true,
  });
  // What is not set is left out: that saves memory. An enum's number that has no name stays a number.
  const configs = loadSync('ratelimit/config/ratelimit/v3/rls_conf.proto', {
    includeDirs: [assetPath('proto')],
    keepCase: true,
    longs: Number,
    enums: String,
  });
  const request = messageOf(definition, 'envoy.service.discovery.v3.DiscoveryRequest');
  const response = messageOf(definition, 'envoy.service.discovery.v3.DiscoveryResponse');
  const config = messageOf(configs, CONFIG);
  const counter = new FieldCounter(configs, CONFIG, DESCRIPTOR);
  return {
    encodeRequest: (value) => request.serialize(value),
    decodeResponse: (bytes) => {
      const decoded = response.deserialize(strict(bytes)) as LoadedResponse;
      const resources = decoded.resources.map(({ type_url: typeUrl, value }) => ({ typeUrl, value }));
      return { ...decoded, resources };
    },
    decodeConfig: (bytes) => config.deserialize(strict(bytes)) as Message,
    countFields: (bytes, most) => counter.count(bytes, most),
  };
}

function messageOf(definition: PackageDefinition, name: string): MessageTypeDefinition<object, object> {
  return definition[name] as MessageTypeDefinition<object, object>;
}

/** Not as a Buffer: of one protobufjs reads a text that is cut off as if it ended there. */
function strict(bytes: Uint8Array): Buffer {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) as Buffer;
}
