import {
  decodeHealthListRequest,
  decodeHealthRequest,
  encodeHealthList,
  encodeHealthResponse,
  type HealthRequest,
  type HealthResponse,
} from '../codec/services/health-messages.js';
import { decodeRequest, type GenericCall, unaryMethod } from './generic-method.js';
import { GrpcError, type GrpcServer, STATUS } from './grpc-server.js';

/** HTTP/2 path of the method that health probes call. */
export const HEALTH_CHECK_PATH = '/grpc.health.v1.Health/Check';

/** Wraps the handler of a unary method so that its calls are timed. */
export type Timed = <Request, Answer>(
  method: string,
  answer: (request: Request) => Answer,
) => (request: Request) => Answer;

/** Maximum number of watchers notified in one turn of the event loop, which takes about a millisecond. */
const WATCHERS_PER_TURN = 50;

/**
 * Implements grpc.health.v1 (https://github.com/grpc/grpc/blob/master/doc/health-checking.md) with one state for all
 * names. The package grpc-health-check keeps an entry for every name that a caller ever watched.
 */
export class Health {
  readonly #names: readonly string[];
  readonly #watchers = new Set<GenericCall>();
  #serving = false;

  /** `names` are the service names in addition to '', the whole server. The initial state is NOT_SERVING. */
  constructor(names: readonly string[]) {
    this.#names = ['', ...names];
  }

  /** Number of open Watch calls on existing names. */
  get watchers(): number {
    return this.#watchers.size;
  }

  /** Changes the state of all names, and notifies all watchers. */
  setServing(serving: boolean): void {
    if (serving === this.#serving) return;
    this.#serving = serving;
    this.#notify([...this.#watchers]);
  }

  /** Notifies some watchers in each turn of the event loop, with the current state. */
  #notify(calls: readonly GenericCall[]): void {
    const response = encodeHealthResponse(this.#response());
    for (const call of calls.slice(0, WATCHERS_PER_TURN)) {
      if (this.#watchers.has(call)) call.send(response);
    }
    const rest = calls.slice(WATCHERS_PER_TURN);
    if (rest.length > 0) setImmediate(() => this.#notify(rest));
  }

  /** Registers Check, Watch and List. `timed` wraps the methods with a single response. */
  addTo(server: Pick<GrpcServer, 'addGenericMethod'>, timed: Timed = (_method, answer) => answer): void {
    server.addGenericMethod(
      unaryMethod(HEALTH_CHECK_PATH, decodeHealthRequest, timed('Check', this.#check.bind(this))),
    );
    server.addGenericMethod({
      path: '/grpc.health.v1.Health/Watch',
      requestStream: false,
      responseStream: true,
      begin: (call) => ({
        onMessage: (bytes) => this.#watch(decodeRequest(decodeHealthRequest, bytes), call),
        onClosed: () => this.#watchers.delete(call),
      }),
    });
    server.addGenericMethod(
      unaryMethod(
        '/grpc.health.v1.Health/List',
        decodeHealthListRequest,
        timed('List', this.#list.bind(this)),
      ),
    );
  }

  #check({ service }: HealthRequest): Buffer {
    if (this.#names.includes(service)) return encodeHealthResponse(this.#response());
    throw new GrpcError(STATUS.NOT_FOUND, 'this server has no service with this name');
  }

  #watch({ service }: HealthRequest, call: GenericCall): void {
    // The protocol requires an answer for unknown names, with the stream kept open. Unknown names never become known
    // here.
    if (!this.#names.includes(service)) {
      call.send(encodeHealthResponse({ status: 'SERVICE_UNKNOWN' }));
      return;
    }
    this.#watchers.add(call);
    call.send(encodeHealthResponse(this.#response()));
  }

  #list(): Buffer {
    const statuses = Object.fromEntries(this.#names.map((name) => [name, this.#response()]));
    return encodeHealthList({ statuses });
  }

  #response(): HealthResponse {
    return { status: this.#serving ? 'SERVING' : 'NOT_SERVING' };
  }
}
