import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { assetPath } from '../../runtime/assets.js';
import type { Message } from './rate-limit-config.js';

/** Type URL of the resources that weir requests from a management server. */
export const RATE_LIMIT_CONFIG_TYPE = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
/** HTTP/2 path of the ADS method (proto/envoy/service/discovery/v3/ads.proto). */
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

/** The response as proto-loader returns it. protobufjs has its own definition of Any, whose field names are kept. */
interface LoadedResponse extends Omit<DiscoveryResponse, 'resources'> {
  readonly resources: readonly { readonly type_url: string; readonly value: Uint8Array }[];
}

/** Encoder and decoder for both ends of a stream. Decoding throws an Error for bytes that are not such a message. */
export interface DiscoveryCodec {
  encodeRequest(request: DiscoveryRequest): Buffer;
  decodeResponse(bytes: Uint8Array): DiscoveryResponse;
  /** Decodes a ratelimit.config.ratelimit.v3.RateLimitConfig with the field names of its proto file. */
  decodeConfig(bytes: Uint8Array): Message;
}

/**
 * Creates the codec. It reads the files in `proto/`, so create one per process. Throws an Error if the build is
 * incomplete.
 */
export function createDiscoveryCodec(): DiscoveryCodec {
  const definition = loadSync('envoy/service/discovery/v3/discovery.proto', {
    includeDirs: [assetPath('proto')],
    longs: Number,
    defaults: true,
  });
  // Omit unset fields to save memory. An unknown enum number stays a number.
  const configs = loadSync('ratelimit/config/ratelimit/v3/rls_conf.proto', {
    includeDirs: [assetPath('proto')],
    keepCase: true,
    longs: Number,
    enums: String,
  });
  const request = messageOf(definition, 'envoy.service.discovery.v3.DiscoveryRequest');
  const response = messageOf(definition, 'envoy.service.discovery.v3.DiscoveryResponse');
  const config = messageOf(configs, 'ratelimit.config.ratelimit.v3.RateLimitConfig');
  return {
    encodeRequest: (value) => request.serialize(value),
    decodeResponse: (bytes) => {
      const decoded = response.deserialize(strictBuffer(bytes)) as LoadedResponse;
      const resources = decoded.resources.map(({ type_url: typeUrl, value }) => ({ typeUrl, value }));
      return { ...decoded, resources };
    },
    decodeConfig: (bytes) => config.deserialize(strictBuffer(bytes)) as Message,
  };
}

function messageOf(definition: PackageDefinition, name: string): MessageTypeDefinition<object, object> {
  return definition[name] as MessageTypeDefinition<object, object>;
}

/** Returns the bytes in a form that protobufjs reads strictly. From a Buffer, it would accept a truncated string. */
function strictBuffer(bytes: Uint8Array): Buffer {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) as Buffer;
}
