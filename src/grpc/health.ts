import type { ServerUnaryCall, ServerWritableStream, ServiceDefinition, sendUnaryData } from '@grpc/grpc-js';
import {
  decodeHealthListRequest,
  decodeHealthRequest,
  encodeHealthList,
  encodeHealthResponse,
  type HealthListResponse,
  type HealthRequest,
  type HealthResponse,
} from '../codec/services/health-messages.js';
import { clientSide } from './client-side.js';
import { type GrpcServer, STATUS } from './grpc-server.js';

/** HTTP/2 path of the method that probes ask. */
export const HEALTH_CHECK_PATH = '/grpc.health.v1.Health/Check';

const asked = { requestStream: false, requestDeserialize: decodeHealthRequest, ...clientSide };
const HEALTH_SERVICE: ServiceDefinition = {
  Check: {
    ...asked,
    path: HEALTH_CHECK_PATH,
    responseStream: false,
    responseSerialize: encodeHealthResponse,
  },
  Watch: {
    ...asked,
    path: '/grpc.health.v1.Health/Watch',
    responseStream: true,
    responseSerialize: encodeHealthResponse,
  },
  List: {
    ...asked,
    path: '/grpc.health.v1.Health/List',
    responseStream: false,
    requestDeserialize: decodeHealthListRequest,
    responseSerialize: encodeHealthList,
  },
};

type WatchCall = ServerWritableStream<HealthRequest, HealthResponse>;

/** Watchers told of a change in one turn of the event loop: about a millisecond. */
const TOLD_PER_TURN = 50;

/**
 * grpc.health.v1 (https://github.com/grpc/grpc/blob/master/doc/health-checking.md): one state for all names. That of
 * the package grpc-health-check keeps an entry for every name that a caller ever watched.
 */
export class Health {
  readonly #names: readonly string[];
  readonly #watchers = new Set<WatchCall>();
  #serving = false;

  /** `names` are the services asked about beside the overall ''. Starts as NOT_SERVING. */
  constructor(names: readonly string[]) {
    this.#names = ['', ...names];
  }

  /** Open Watch calls on names that exist. */
  get watchers(): number {
    return this.#watchers.size;
  }

  /** Changes the state of every name, and tells every watcher. */
  setServing(serving: boolean): void {
    if (serving === this.#serving) return;
    this.#serving = serving;
    this.#tell([...this.#watchers]);
  }

  /** Some in each turn of the event loop; the state is that of the moment. */
  #tell(calls: readonly WatchCall[]): void {
    for (const call of calls.slice(0, TOLD_PER_TURN)) {
      if (this.#watchers.has(call)) call.write(this.#response());
    }
    const rest = calls.slice(TOLD_PER_TURN);
    if (rest.length > 0) setImmediate(() => this.#tell(rest));
  }

  /** Registers Check, Watch and List. */
  addTo(server: Pick<GrpcServer, 'addService'>): void {
    server.addService(HEALTH_SERVICE, {
      Check: (
        call: ServerUnaryCall<HealthRequest, HealthResponse>,
        callback: sendUnaryData<HealthResponse>,
      ) => {
        if (this.#names.includes(call.request.service)) callback(null, this.#response());
        else callback({ code: STATUS.NOT_FOUND, details: 'this server has no service of that name' });
      },
      Watch: (call: WatchCall) => {
        // The protocol wants unknown names answered and the stream kept open; they never change here.
        if (!this.#names.includes(call.request.service)) {
          call.write({ status: 'SERVICE_UNKNOWN' });
          return;
        }
        this.#watchers.add(call);
        call.once('cancelled', () => this.#watchers.delete(call));
        call.write(this.#response());
      },
      List: (
        _call: ServerUnaryCall<object, HealthListResponse>,
        callback: sendUnaryData<HealthListResponse>,
      ) => {
        callback(null, {
          statuses: Object.fromEntries(this.#names.map((name) => [name, this.#response()])),
        });
      },
    });
  }

  #response(): HealthResponse {
    return { status: this.#serving ? 'SERVING' : 'NOT_SERVING' };
  }
}
