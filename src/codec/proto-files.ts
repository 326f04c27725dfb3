import { readAsset } from '../runtime/assets.js';

/** A proto file, as described by the build. */
export interface ProtoFile {
  /** Name in import statements: `google/protobuf/struct.proto`. */
  readonly name: string;
  readonly imports: readonly string[];
  /** Full names of the services that the file defines. */
  readonly services: readonly string[];
  /** Full names of all symbols that the file defines, including services. */
  readonly symbols: readonly string[];
  /** An encoded google.protobuf.FileDescriptorProto, with field names as in the proto file (`hits_addend`). */
  readonly descriptor: Buffer;
}

type Described = Omit<ProtoFile, 'descriptor'> & { readonly descriptor: string };

let files: readonly ProtoFile[] | undefined;

/**
 * Returns the files that define weir's services (RateLimitService, health, reflection) and their imports, imported
 * files first. The build output of `proto/` is read once. Throws if the build is incomplete.
 */
export function protoFiles(): readonly ProtoFile[] {
  files ??= (JSON.parse(readAsset('proto/files.json')) as Described[]).map((file) => ({
    ...file,
    descriptor: Buffer.from(file.descriptor, 'base64'),
  }));
  return files;
}
