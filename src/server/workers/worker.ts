import cluster from 'node:cluster';
import { reportTop, type TopRequest } from '../../admin/top/top-request.js';
import type { TlsMaterial, TlsOptions } from '../../grpc/grpc-server.js';
import type { TlsSource } from '../../h2/tls-material.js';
import { systemClock } from '../../limiter/clock.js';
import { Closers } from '../../runtime/closers.js';
import { IdleWait } from '../../runtime/idle-wait.js';
import { CALLER_WITHOUT_DEADLINE } from '../../service/caller.js';
import { Refusal } from '../../service/refusal.js';
import type { FailureCounts } from '../../telemetry/history/failure-counts.js';
import type { RateCounts } from '../../telemetry/history/rate-counts.js';
import type { TopSpanSummary } from '../../telemetry/top/top-buckets.js';
import { type GrpcService, openGrpcService } from '../grpc-service.js';
import { statFamilies } from '../metrics/stats-text.js';
import { createServerLogger } from '../server-logger.js';
import { StartError } from '../start-error.js';
import { answerCall, type CallHandlers, type SendPart, sendRows } from './call-handlers.js';
import { type CallMessage, type DecideAsk, type DecidedByWorker, READ_LATE } from './calls.js';
import type { FromWorker, ToWorker, WorkerHealth } from './messages.js';
import { ReceivedPolicyProvider } from './received-policy-provider.js';
import { sendFamilies } from './worker-metrics.js';

/** Answer to a request whose deadline has passed. */
const DEADLINE_PASSED = new Refusal('unavailable', READ_LATE);

type StartMessage = Extract<ToWorker, { kind: 'start' }>;

/** Certificates from the primary process. */
class ReceivedTls implements TlsSource {
  readonly options: TlsOptions;
  #setTls: ((material: TlsMaterial) => void) | undefined;
  /** Certificate that arrived before `follow`. */
  #pendingMaterial: TlsMaterial | undefined;

  constructor(options: TlsOptions) {
    this.options = options;
  }

  follow(setTls: (material: TlsMaterial) => void): void {
    this.#setTls = setTls;
    if (this.#pendingMaterial !== undefined) setTls(this.#pendingMaterial);
  }

  replace(material: TlsMaterial): void {
    if (this.#setTls === undefined) this.#pendingMaterial = material;
    else this.#setTls(material);
  }
}

/** A running worker, with the handlers of its messages. */
class Worker {
  readonly #closers: Closers;
  readonly #policies: ReceivedPolicyProvider;
  readonly #tls: ReceivedTls | undefined;
  readonly #service: GrpcService;
  readonly #handlers: CallHandlers = {
    decide: (ask, _sendPart, delayMicros) => this.#decide(ask, delayMicros),
    administer: ({ question, caller }) => this.#service.administer(question, caller),
    top: (ask, sendPart) => this.#sendTop(ask, sendPart),
    rates: (_ask, sendPart) => this.#sendRates(sendPart),
    metrics: (_ask, sendPart) => this.#sendMetrics(sendPart),
  };
  #pendingDecisions = 0;
  #lastDecided = false;
  readonly #decided = new IdleWait(() => this.#lastDecided && this.#pendingDecisions === 0);

  constructor(start: StartMessage, closers: Closers) {
    const { settings, version } = start;
    const { log, output } = createServerLogger(settings, start.terminal, cluster.worker?.id);
    this.#closers = closers;
    this.#policies = new ReceivedPolicyProvider(start.policies);
    this.#tls = start.tls === undefined ? undefined : new ReceivedTls(start.tls);
    this.#service = openGrpcService(
      {
        settings,
        version,
        policies: this.#policies,
        tls: this.#tls,
        clock: systemClock,
        log,
        output,
        worker: cluster.worker?.id,
      },
      closers,
    );
    this.#service.metrics.exposeLogOutput(output);
    this.#service.onGivenUp(({ lines }) => send({ kind: 'givenUp', lines }));
    this.#service.onHealth(() => send({ kind: 'health', health: this.#health() }));
  }

  async listen(): Promise<void> {
    const grpc = await this.#service.listen();
    send({ kind: 'listening', grpc, health: this.#health() });
  }

  get policies(): ReceivedPolicyProvider {
    return this.#policies;
  }

  replaceTls(material: TlsMaterial): void {
    this.#tls?.replace(material);
  }

  /** Answers a call of the primary process. */
  async answer(call: CallMessage): Promise<void> {
    const isDecision = call.name === 'decide';
    if (isDecision) this.#pendingDecisions++;
    await answerCall(this.#handlers, call, sendAndWait);
    if (isDecision) this.#pendingDecisions--;
    this.#decided.check();
  }

  async #decide(
    { request, timeoutMicros, headers, connection }: DecideAsk,
    delayMicros: number,
  ): Promise<DecidedByWorker> {
    const remainingMicros = timeoutMicros - delayMicros;
    const decided =
      remainingMicros < 0
        ? DEADLINE_PASSED
        : await this.#service.decide(request, remainingMicros, {
            headers,
            ...CALLER_WITHOUT_DEADLINE,
            connection,
          });
    if (!(decided instanceof Refusal)) return { response: decided };
    return { refused: decided.kind, message: decided.message };
  }

  async #sendMetrics(sendPart: SendPart<'metrics'>): Promise<null> {
    const { registry, reference } = this.#service.metrics;
    await sendFamilies('metrics', await registry.read(), sendPart);
    await sendFamilies('stats', statFamilies(reference), sendPart);
    return null;
  }

  async #sendTop(ask: TopRequest, sendPart: SendPart<'top'>): Promise<TopSpanSummary | undefined> {
    const { top } = this.#service;
    if (top === undefined) return undefined;
    const { rows, about } = reportTop(top, ask);
    await sendRows(rows, sendPart);
    return about;
  }

  /** Sends the decisions since the previous call, and the current latency of Redis. */
  async #sendRates(sendPart: SendPart<'rates'>): Promise<FailureCounts> {
    const rows: RateCounts[] = [];
    this.#service.metrics.takeNewDecisions((row) => rows.push(row));
    await sendRows(rows, sendPart);
    send({ kind: 'health', health: this.#health() });
    return this.#service.metrics.takeNewFailures();
  }

  /** Notes that no further `decide` follows. */
  lastDecided(): void {
    this.#lastDecided = true;
    this.#decided.check();
  }

  async drain(why: string): Promise<void> {
    // The primary process may still forward requests.
    await this.#service.drain(why, (graceMs) => this.#decided.wait(graceMs));
    await this.#closers.close();
  }

  #health(): WorkerHealth {
    return {
      reason: this.#service.serving.reason,
      store: this.#service.storeName,
      storeUp: this.#service.storeUp(),
      redis: this.#service.storeNodes(),
    };
  }
}

/** Sends a message to the primary process. If that has exited, Node.js ends this process, too. */
function send(message: FromWorker): void {
  if (process.connected) process.send?.(message);
}

/** Sends a message. Resolves once it is sent, so that this process may exit, or if the primary process has exited. */
function sendAndWait(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

/**
 * Runs this process as a worker of {@link WorkerPool}. Resolves with true after a drain, or with false if it cannot
 * start; the primary process then knows the reason.
 */
export function runWorker(): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const closers = new Closers();
    let worker: Worker | undefined;
    const start = async (message: StartMessage): Promise<void> => {
      try {
        worker = new Worker(message, closers);
        await worker.listen();
      } catch (error) {
        await closers.close();
        if (!(error instanceof StartError)) throw error;
        send({ kind: 'failed', lines: error.lines });
        resolve(false);
      }
    };
    process.on('message', (message: ToWorker) => {
      if (message.kind === 'start') start(message).catch(reject);
      else if (message.kind === 'policies_begin') worker?.policies.begin();
      else if (message.kind === 'policies_slice') {
        worker?.policies.add(message.slice);
        send({ kind: 'policies_taken' });
      } else if (message.kind === 'policies_end') worker?.policies.end(message.version);
      else if (message.kind === 'tls') worker?.replaceTls(message.material);
      else if (message.kind === 'ping') send({ kind: 'pong' });
      else if (message.kind === 'call') worker?.answer(message).catch(reject);
      else if (message.kind === 'last-decided') worker?.lastDecided();
      else if (worker === undefined) resolve(true);
      else worker.drain(message.why).then(() => resolve(true), reject);
    });
    send({ kind: 'ready' });
  });
}
