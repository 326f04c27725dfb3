import type { Metadata } from '@grpc/grpc-js';
import { HeaderField } from '../../h2/hpack/header-field.js';

/** Fields that belong to gRPC or HTTP/2 and not to the application, in either direction. */
const RESERVED = new Set([
  'accept-encoding',
  'connection',
  'content-type',
  'grpc-accept-encoding',
  'grpc-encoding',
  'grpc-message',
  'grpc-status',
  'grpc-timeout',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

/** The application's part of a request's fields (name and value by turns). What metadata cannot hold is left out. */
export function toMetadata(fields: readonly string[]): Metadata {
  // Health and reflection ask for none, so that most servers do without the package.
  const grpc = require('@grpc/grpc-js') as typeof import('@grpc/grpc-js');
  const metadata = new grpc.Metadata();
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] as string;
    const value = fields[index + 1] as string;
    if (RESERVED.has(name)) continue;
    try {
      if (!name.endsWith('-bin')) metadata.add(name, value);
      else for (const part of value.split(',')) metadata.add(name, Buffer.from(part.trim(), 'base64'));
    } catch {
      // A value with bytes outside of printable ASCII, or a name that gRPC does not allow.
    }
  }
  return metadata;
}

/** Header or trailer fields for metadata of an answer; binary values in base64. */
export function toFields(metadata: Metadata | null | undefined): HeaderField[] {
  const fields: HeaderField[] = [];
  if (metadata === null || metadata === undefined) return fields;
  for (const [name, values] of Object.entries(metadata.toHttp2Headers())) {
    if (RESERVED.has(name) || values === undefined) continue;
    for (const value of Array.isArray(values) ? values : [values]) {
      // Base64 without padding, as gRPC over HTTP/2 asks of who sends.
      const text = name.endsWith('-bin') ? String(value).replace(/=+$/, '') : String(value);
      fields.push(new HeaderField(name, text));
    }
  }
  return fields;
}
