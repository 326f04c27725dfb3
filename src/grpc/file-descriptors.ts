import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';

/** The parts of google.protobuf.FileDescriptorProto that are looked at; the rest is carried along. */
interface Field {
  readonly name: string;
  typeName?: string;
  jsonName?: string;
}
interface Message {
  name: string;
  readonly field?: Field[];
  readonly nestedType?: Message[];
  readonly enumType?: readonly { readonly name: string }[];
  readonly options?: { readonly mapEntry?: boolean };
}
interface Service {
  readonly name: string;
  readonly method?: { inputType: string; outputType: string }[];
}
interface File {
  name: string;
  readonly package: string;
  dependency: string[];
  messageType: Message[];
  enumType: { readonly name: string }[];
  readonly service?: Service[];
}

/** Files of the well-known types, by type; the others we could meet are wrappers. */
const WELL_KNOWN_PACKAGE = 'google.protobuf';
const WELL_KNOWN_FILES: Readonly<Record<string, string>> = {
  Duration: 'duration',
  ListValue: 'struct',
  NullValue: 'struct',
  Struct: 'struct',
  Timestamp: 'timestamp',
  Value: 'struct',
};

/**
 * The files behind `definitions` as encoded FileDescriptorProtos that a strict client can link.
 *
 * proto-loader's own are not: they hold one file per package without `dependency`, type names relative to some scope,
 * and map entries under names that protobuf does not allow; clients on Go's protobuf library refuse them. Here type
 * names are absolute, dependencies listed, JSON names set, map entries named `<Field>Entry`, and the well-known types
 * stand in the files that every client knows them by. The first definition of a package counts.
 */
export function fileDescriptors(definitions: readonly PackageDefinition[]): Buffer[] {
  const descriptorTypes = loadSync('google/protobuf/descriptor.proto');
  const codec = descriptorTypes['google.protobuf.FileDescriptorProto'] as MessageTypeDefinition<
    object,
    object
  >;
  const files = new Map<string, File>();
  for (const encoded of definitions.flatMap(encodedFiles)) {
    const file = codec.deserialize(encoded) as File;
    if (!files.has(file.package)) files.set(file.package, file);
  }
  const complete = [...files.values()].flatMap(splitFile);
  for (const file of complete) for (const message of file.messageType) nameMapEntries(message);
  link(complete);
  return complete.map((file) => codec.serialize(file));
}

/** proto-loader puts all files of a load behind every message and enum of it. */
function encodedFiles(definition: PackageDefinition): Buffer[] {
  for (const member of Object.values(definition)) {
    if ('fileDescriptorProtos' in member && Array.isArray(member.fileDescriptorProtos)) {
      return member.fileDescriptorProtos as Buffer[];
    }
  }
  return [];
}

/** Names a package's file after the package, and sorts the well-known types into their own files. */
function splitFile(file: File): File[] {
  const complete = {
    ...file,
    dependency: [],
    messageType: file.messageType ?? [],
    enumType: file.enumType ?? [],
  };
  if (file.package !== WELL_KNOWN_PACKAGE) {
    return [{ ...complete, name: `${file.package.replaceAll('.', '/')}.proto` }];
  }
  const fileOf = (type: { readonly name: string }): string => WELL_KNOWN_FILES[type.name] ?? 'wrappers';
  const names = new Set([...complete.messageType, ...complete.enumType].map(fileOf));
  return [...names].map((name) => ({
    ...complete,
    name: `google/protobuf/${name}.proto`,
    messageType: complete.messageType.filter((type) => fileOf(type) === name),
    enumType: complete.enumType.filter((type) => fileOf(type) === name),
    dependency: [],
  }));
}

function nameMapEntries(message: Message): void {
  for (const nested of message.nestedType ?? []) {
    nameMapEntries(nested);
    if (nested.options?.mapEntry !== true) continue;
    const field = message.field?.find((candidate) => candidate.typeName === nested.name);
    if (field === undefined) continue;
    nested.name = `${camelCase(`_${field.name}`)}Entry`;
    field.typeName = nested.name;
  }
}

/** Makes every type name absolute and lists the files it leads to. */
function link(files: readonly File[]): void {
  const fileOfType = new Map<string, string>();
  for (const file of files) {
    for (const type of file.enumType) fileOfType.set(`${file.package}.${type.name}`, file.name);
    for (const message of file.messageType) index(message, file.package, file.name, fileOfType);
  }
  for (const file of files) {
    const resolve = (name: string, scope: string): string => {
      const absolute = resolveName(name, scope, fileOfType);
      const target = fileOfType.get(absolute) as string;
      if (target !== file.name && !file.dependency.includes(target)) file.dependency.push(target);
      return `.${absolute}`;
    };
    for (const message of file.messageType) resolveFields(message, file.package, resolve);
    for (const method of (file.service ?? []).flatMap((service) => service.method ?? [])) {
      method.inputType = resolve(method.inputType, file.package);
      method.outputType = resolve(method.outputType, file.package);
    }
  }
}

function index(message: Message, scope: string, file: string, fileOfType: Map<string, string>): void {
  const name = `${scope}.${message.name}`;
  fileOfType.set(name, file);
  for (const type of message.enumType ?? []) fileOfType.set(`${name}.${type.name}`, file);
  for (const nested of message.nestedType ?? []) index(nested, name, file, fileOfType);
}

function resolveFields(
  message: Message,
  scope: string,
  resolve: (name: string, scope: string) => string,
): void {
  const name = `${scope}.${message.name}`;
  for (const field of message.field ?? []) {
    field.jsonName = camelCase(field.name);
    if (field.typeName !== undefined) field.typeName = resolve(field.typeName, name);
  }
  for (const nested of message.nestedType ?? []) resolveFields(nested, name, resolve);
}

/** Looks a name up as protobuf does: in the innermost scope first, then outwards. */
function resolveName(name: string, scope: string, known: ReadonlyMap<string, string>): string {
  if (name.startsWith('.')) return name.slice(1);
  for (let outer = scope; ; outer = outer.slice(0, Math.max(outer.lastIndexOf('.'), 0))) {
    const candidate = outer === '' ? name : `${outer}.${name}`;
    if (known.has(candidate)) return candidate;
    if (outer === '') throw new Error(`the proto files do not define ${name}, which ${scope} uses`);
  }
}

/** `hits_addend` as `hitsAddend`, the way protoc makes JSON names. */
function camelCase(name: string): string {
  return name.replace(/_+([a-z0-9])?/g, (_all, letter: string | undefined) => letter?.toUpperCase() ?? '');
}
