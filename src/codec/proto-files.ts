import { readAsset } from '../assets.js';

/** A proto file, as the build describes it. */
export interface ProtoFile {
  /** As other files import it: `google/protobuf/struct.proto`. */
  readonly name: string;
  readonly imports: readonly string[];
  /** Full names of the services it defines. */
  readonly services: readonly string[];
  /** Full names of all it defines, the services among them. */
  readonly symbols: readonly string[];
  /** An encoded google.protobuf.FileDescriptorProto, with field names as they stand in the file (`hits_addend`). */
  readonly descriptor: Buffer;
}

type Described = Omit<ProtoFile, 'descriptor'> & { readonly descriptor: string };

let files: readonly ProtoFile[] | undefined;

/**
 * The files that define weir's services (RateLimitService, health, reflection) and those they import, imported ones
 * first. Read once, from what the build makes of `proto/`. Throws when the build is incomplete.
 */
export function protoFiles(): readonly ProtoFile[] {
  files ??= (JSON.parse(readAsset('proto/files.json')) as Described[]).map((file) => ({
    ...file,
    descriptor: Buffer.from(file.descriptor, 'base64'),
  }));
  return files;
}
