import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { assetPath } from '../assets.js';

const HEALTH = 'grpc/health/v1/health.proto';
const REFLECTION = ['grpc/reflection/v1/reflection.proto', 'grpc/reflection/v1alpha/reflection.proto'];

let health: ServiceDefinition | undefined;

/** grpc.health.v1.Health in the shape of @grpc/grpc-js: enums by name, absent fields their defaults. Read once. */
export function healthService(): ServiceDefinition {
  health ??= loadSync(HEALTH, { includeDirs: [assetPath('proto')], enums: String, defaults: true })[
    'grpc.health.v1.Health'
  ] as ServiceDefinition;
  return health;
}

/** The services that every server of ours has beside its own, with field names as they stand in the files. */
export function ownDefinitions(): readonly PackageDefinition[] {
  const includeDirs = [assetPath('proto')];
  return [HEALTH, ...REFLECTION].map((file) => loadSync(file, { includeDirs, keepCase: true }));
}
