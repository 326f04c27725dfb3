// What the proto files define, for server reflection and JSON (src/codec/proto-files.ts). Made by the build, as reading
// proto files takes a fifth of the time of a start.
import { join } from 'node:path';
import { loadSync } from '@grpc/proto-loader';
import { root } from './shell.mjs';

/** The services of a server: what they import comes along. */
const SERVICES = [
  'envoy/service/ratelimit/v3/rls.proto',
  'grpc/health/v1/health.proto',
  'grpc/reflection/v1/reflection.proto',
  'grpc/reflection/v1alpha/reflection.proto',
];

/** Files of the well-known types, by type; the others we could meet are wrappers. */
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
 * The files of {@link SERVICES} and all they import, imported ones first: {name, imports, services, symbols,
 * descriptor}, an encoded FileDescriptorProto in base64 that a strict client can link.
 *
 * proto-loader's own is not: it holds one file per package without `dependency`, type names relative to some scope,
 * and map entries under names that protobuf does not allow; clients on Go's protobuf library refuse it. Here type names
 * are absolute, dependencies listed, JSON names set, map entries named `<Field>Entry`, and the well-known types stand
 * in the files that every client knows them by. The first definition of a package counts.
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

/** Full names of all that a file defines. */
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

/** Values belong to what encloses their enum; some clients look for them below the enum. */
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

/** proto-loader puts all files of a load behind every message and enum of it. */
function encodedFiles(definition) {
  for (const member of Object.values(definition)) {
    if ('fileDescriptorProtos' in member && Array.isArray(member.fileDescriptorProtos)) {
      return member.fileDescriptorProtos;
    }
  }
  return [];
}

/** Names a package's file after the package, and sorts the well-known types into their own files. */
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

/** Makes every type name absolute and lists the files it leads to. */
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

/** Looks a name up as protobuf does: in the innermost scope first, then outwards. */
function resolveName(name, scope, known) {
  if (name.startsWith('.')) return name.slice(1);
  for (let outer = scope; ; outer = outer.slice(0, Math.max(outer.lastIndexOf('.'), 0))) {
    const candidate = outer === '' ? name : `${outer}.${name}`;
    if (known.has(candidate)) return candidate;
    if (outer === '') throw new Error(`the proto files do not define ${name}, which ${scope} uses`);
  }
}

/** `hits_addend` as `hitsAddend`, the way protoc makes JSON names. */
function camelCase(name) {
  return name.replace(/_+([a-z0-9])?/g, (_all, letter) => letter?.toUpperCase() ?? '');
}
