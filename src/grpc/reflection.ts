import type { ProtoFile } from '../codec/proto-files.js';
import {
  decodeReflectionRequest,
  encodeReflectionResponse,
  type ReflectionAnswer,
  type ReflectionQuery,
} from '../codec/services/reflection-messages.js';
import { decodeRequest } from './generic-method.js';
import { type GrpcServer, STATUS } from './grpc-server.js';

const VERSIONS = ['v1', 'v1alpha'];

/**
 * Registers server reflection, v1 and v1alpha (https://github.com/grpc/grpc/blob/master/doc/server-reflection.md), for
 * everything that `files` define. The files contain no extensions.
 */
export function addReflection(
  server: Pick<GrpcServer, 'addGenericMethod'>,
  files: readonly ProtoFile[],
): void {
  const index = new SymbolIndex(files);
  for (const version of VERSIONS) {
    server.addGenericMethod({
      path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
      requestStream: true,
      responseStream: true,
      begin: (call) => ({
        onMessage(bytes) {
          const request = decodeRequest(decodeReflectionRequest, bytes);
          call.send(encodeReflectionResponse(request, index.answer(request.question)));
        },
        onRequestEnd: () => call.end(),
      }),
    });
  }
}

/** Finds the files that define a symbol, with all their imports. */
class SymbolIndex {
  readonly #services: readonly string[];
  readonly #byName: ReadonlyMap<string, ProtoFile>;
  readonly #bySymbol: ReadonlyMap<string, ProtoFile>;

  constructor(files: readonly ProtoFile[]) {
    this.#services = files.flatMap(({ services }) => services);
    this.#byName = new Map(files.map((file) => [file.name, file]));
    this.#bySymbol = new Map(
      files.flatMap((file) => file.symbols.map((symbol): [string, ProtoFile] => [symbol, file])),
    );
  }

  answer(question: ReflectionQuery): ReflectionAnswer {
    switch (question.kind) {
      case 'services':
        return { kind: 'services', names: this.#services };
      case 'file':
        return this.#withImports(this.#byName.get(question.name), `Proto file not found: ${question.name}`);
      case 'symbol':
        return this.#withImports(this.#bySymbol.get(question.name), `Symbol not found: ${question.name}`);
      case 'extension': {
        const { type, number } = question;
        return notFound(`Extension not found for symbol ${type} at field ${number}`);
      }
      case 'extensions':
        return notFound(`Extensions not found for symbol ${question.type}`);
      default:
        return {
          kind: 'error',
          code: STATUS.UNIMPLEMENTED,
          message: 'the request type is unknown',
        };
    }
  }

  #withImports(file: ProtoFile | undefined, message: string): ReflectionAnswer {
    if (file === undefined) return notFound(message);
    const found = new Set([file]);
    // Iterating over a Set includes elements that are added meanwhile.
    for (const { imports } of found)
      for (const name of imports) found.add(this.#byName.get(name) as ProtoFile);
    return { kind: 'files', files: Array.from(found, ({ descriptor }) => descriptor) };
  }
}

function notFound(message: string): ReflectionAnswer {
  return { kind: 'error', code: STATUS.NOT_FOUND, message };
}
