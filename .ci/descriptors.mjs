// Returns the definitions of the proto files, for server reflection and JSON (src/codec/proto-files.ts). The build
// creates them, because parsing proto files takes a fifth of the start time.
import { join } from 'node:path';
import { loadSync } from '@grpc/proto-loader';
import { root } from './shell.mjs';

/** The services of a server. Their imports are included. */
const SERVICES = [
  'envoy/service/ratelimit/v3/rls.proto',
  'grpc/health/v1/health.proto',
  'grpc/reflection/v1/reflection.proto',
  'grpc/reflection/v1alpha/reflection.proto',
];

/** Files of the well-known types, by type. The other types that can occur are wrappers. */
const WELL_KNOWN_PACKAGE = 'google.protobuf';
const WELL_KNOWN_FILES = {
  Duration: 'duration',
  ListValue: 'struct',
  NullValue: 'struct',
  Struct: 'struct',
  Timestamp: 'timestamp',
  Value: 'struct',
};

/**
 * Returns the files of {@link SERVICES} and all their imports, imported files first: {name, imports, services, symbols,
 * descriptor}. The descriptor is an encoded FileDescriptorProto in base64 that a strict client can link.
 *
 * The descriptor of proto-loader cannot be linked: it has one file per package without `dependency`, relative type
 * names, and map entries with names that protobuf does not allow. Clients with Go's protobuf library reject it. This
 * function makes type names absolute, lists dependencies, sets JSON names, names map entries `<Field>Entry`, and moves
 * well-known types to their usual files. The first definition of a package counts.
 */
export function describeFiles() {
  const types = loadSync('google/protobuf/descriptor.proto');
  const files = new Map();
  for (const service of SERVICES) {
    const definition = loadSync(service, { includeDirs: [join(root, 'proto')], keepCase: true });
    for (const encoded of encodedFiles(definition)) {
      const file = types['google.protobuf.FileDescriptorProto'].deserialize(encoded);
      if (!files.has(file.package)) files.set(file.package, file);
    }
  }
  const complete = [...files.values()].flatMap(splitFile);
  for (const file of complete) for (const message of file.messageType) nameMapEntries(message);
  link(complete);
  const encode = (file) => types['google.protobuf.FileDescriptorProto'].serialize(file).toString('base64');
  return importsFirst(complete).map((file) => ({
    name: file.name,
    imports: file.dependency,
    services: (file.service ?? []).map(({ name }) => `${file.package}.${name}`),
    symbols: [...symbolsOf(file)],
    descriptor: encode(file),
  }));
}

/** Returns the full names of all definitions of a file. */
function* symbolsOf(file) {
  for (const type of file.enumType) yield* enumSymbols(file.package, type);
  for (const message of file.messageType) yield* messageSymbols(file.package, message);
  for (const service of file.service ?? []) {
    yield `${file.package}.${service.name}`;
    for (const { name } of service.method ?? []) yield `${file.package}.${service.name}.${name}`;
  }
}

function* messageSymbols(scope, message) {
  const name = `${scope}.${message.name}`;
  yield name;
  for (const nested of message.nestedType ?? []) yield* messageSymbols(name, nested);
  for (const type of message.enumType ?? []) yield* enumSymbols(name, type);
  for (const field of [...(message.field ?? []), ...(message.oneofDecl ?? [])]) yield `${name}.${field.name}`;
}

/** Enum values belong to the scope that contains the enum. Some clients look for them inside the enum. */
function* enumSymbols(scope, type) {
  yield `${scope}.${type.name}`;
  for (const { name } of type.value ?? []) yield* [`${scope}.${name}`, `${scope}.${type.name}.${name}`];
}

function importsFirst(files) {
  const byName = new Map(files.map((file) => [file.name, file]));
  const sorted = new Set();
  const add = (file) => {
    for (const imported of file.dependency) add(byName.get(imported));
    sorted.add(file);
  };
  for (const file of files) add(file);
  return [...sorted];
}

/** proto-loader attaches all files of a load to each of its messages and enums. */
function encodedFiles(definition) {
  for (const member of Object.values(definition)) {
    if ('fileDescriptorProtos' in member && Array.isArray(member.fileDescriptorProtos)) {
      return member.fileDescriptorProtos;
    }
  }
  return [];
}

/** Names the file of a package after the package, and moves well-known types to their own files. */
function splitFile(file) {
  const complete = {
    ...file,
    dependency: [],
    messageType: file.messageType ?? [],
    enumType: file.enumType ?? [],
  };
  if (file.package !== WELL_KNOWN_PACKAGE) {
    return [{ ...complete, name: `${file.package.replaceAll('.', '/')}.proto` }];
  }
  const fileOf = (type) => WELL_KNOWN_FILES[type.name] ?? 'wrappers';
  const names = new Set([...complete.messageType, ...complete.enumType].map(fileOf));
  return [...names].map((name) => ({
    ...complete,
    name: `google/protobuf/${name}.proto`,
    messageType: complete.messageType.filter((type) => fileOf(type) === name),
    enumType: complete.enumType.filter((type) => fileOf(type) === name),
    dependency: [],
  }));
}

function nameMapEntries(message) {
  for (const nested of message.nestedType ?? []) {
    nameMapEntries(nested);
    if (nested.options?.mapEntry !== true) continue;
    const field = message.field?.find((candidate) => candidate.typeName === nested.name);
    if (field === undefined) continue;
    nested.name = `${camelCase(`_${field.name}`)}Entry`;
    field.typeName = nested.name;
  }
}

/** Makes all type names absolute, and lists the files that they belong to. */
function link(files) {
  const fileOfType = new Map();
  for (const file of files) {
    for (const type of file.enumType) fileOfType.set(`${file.package}.${type.name}`, file.name);
    for (const message of file.messageType) index(message, file.package, file.name, fileOfType);
  }
  for (const file of files) {
    const resolve = (name, scope) => {
      const absolute = resolveName(name, scope, fileOfType);
      const target = fileOfType.get(absolute);
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

function index(message, scope, file, fileOfType) {
  const name = `${scope}.${message.name}`;
  fileOfType.set(name, file);
  for (const type of message.enumType ?? []) fileOfType.set(`${name}.${type.name}`, file);
  for (const nested of message.nestedType ?? []) index(nested, name, file, fileOfType);
}

function resolveFields(message, scope, resolve) {
  const name = `${scope}.${message.name}`;
  for (const field of message.field ?? []) {
    field.jsonName = camelCase(field.name);
    if (field.typeName !== undefined) field.typeName = resolve(field.typeName, name);
  }
  for (const nested of message.nestedType ?? []) resolveFields(nested, name, resolve);
}

/** Resolves a name like protobuf: in the innermost scope first, then in enclosing scopes. */
function resolveName(name, scope, known) {
  if (name.startsWith('.')) return name.slice(1);
  for (let outer = scope; ; outer = outer.slice(0, Math.max(outer.lastIndexOf('.'), 0))) {
    const candidate = outer === '' ? name : `${outer}.${name}`;
    if (known.has(candidate)) return candidate;
    if (outer === '') throw new Error(`the proto files do not define ${name}, which ${scope} uses`);
  }
}

/** Converts `hits_addend` to `hitsAddend`, like protoc for JSON names. */
function camelCase(name) {
  return name.replace(/_+([a-z0-9])?/g, (_all, letter) => letter?.toUpperCase() ?? '');
}
