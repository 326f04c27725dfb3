import type { Server } from '@grpc/grpc-js';
import type { PackageDefinition } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { fileDescriptors } from './file-descriptors.js';
import type { GrpcServer } from './grpc-server.js';
import { ownDefinitions } from './service-definitions.js';

/**
 * Registers server reflection, v1 and v1alpha (https://github.com/grpc/grpc/blob/master/doc/server-reflection.md), for
 * the services of `definition` (loaded with `keepCase`, or clients see no snake_case names), health and reflection
 * itself. Reads proto files; call it once, at start.
 */
export function addReflection(server: Pick<GrpcServer, 'addService'>, definition: PackageDefinition): void {
  const files = fileDescriptors([definition, ...ownDefinitions()]);
  // All it reads from a package definition are the files, and all it does with a server is addService.
  const all = { files: { fileDescriptorProtos: files } } as unknown as PackageDefinition;
  new ReflectionService(all).addToServer(server as unknown as Server);
}
