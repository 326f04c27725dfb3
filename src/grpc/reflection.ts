import { dirname, join } from 'node:path';
import type { Server } from '@grpc/grpc-js';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { protoPath as healthProto } from 'grpc-health-check';
import { fileDescriptors } from './file-descriptors.js';
import type { GrpcServer } from './grpc-server.js';

/**
 * Registers server reflection, v1 and v1alpha (https://github.com/grpc/grpc/blob/master/doc/server-reflection.md), for
 * the services of `definition` (loaded with `keepCase`, or clients see no snake_case names), health and reflection
 * itself. Reads proto files; call it once, at start.
 */
export function addReflection(server: Pick<GrpcServer, 'addService'>, definition: PackageDefinition): void {
  // @grpc/reflection keeps its proto files to itself; its entry file tells where they are.
  const folder = join(dirname(require.resolve('@grpc/reflection')), '../proto/grpc/reflection');
  const own = [healthProto, join(folder, 'v1/reflection.proto'), join(folder, 'v1alpha/reflection.proto')];
  const files = fileDescriptors([definition, ...own.map((path) => loadSync(path, { keepCase: true }))]);
  // All it reads from a package definition are the files, and all it does with a server is addService.
  const all = { files: { fileDescriptorProtos: files } } as unknown as PackageDefinition;
  new ReflectionService(all).addToServer(server as unknown as Server);
}
