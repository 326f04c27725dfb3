import cluster from 'node:cluster';
import type { HealthVerdict } from '../../admin/health-detail.js';
import { reportTop } from '../../admin/top/top-answer.js';
import { systemClock } from '../../limiter/clock.js';
import { Closers } from '../../runtime/closers.js';
import type { RateCounts } from '../../telemetry/rule-series.js';
import { type GrpcService, openGrpcService } from '../grpc-service.js';
import { statFamilies } from '../metrics/reference-outputs.js';
import { HttpPorts, type OpenPort } from '../ports/http-ports.js';
import { createServerLogger } from '../server-logger.js';
import { StartError } from '../start-error.js';
import { openTlsFiles } from '../tls-files.js';
import { metricsParts } from './aggregated-metrics.js';
import {
  type Answer,
  CallChannel,
  type FromWorker,
  type SharedText,
  type ToWorker,
  type WorkerHealth,
} from './messages.js';
import { WorkerPolicies } from './worker-policies.js';

type StartMessage = Extract<ToWorker, { kind: 'start' }>;

/** Milliseconds in which the primary process returns a text. It asks all workers for their metrics. */
const TEXT_TIMEOUT_MS = 10_000;

interface Started {
  readonly service: GrpcService;
  readonly policies: WorkerPolicies;
  readonly http: OpenPort;
}

/** A worker: a server with the gRPC port and PORT. The primary process has the debug port. */
class Worker {
  readonly #closers = new Closers();
  readonly #calls = new CallChannel(send, {
    top: async (question) => {
      const top = this.#started?.service.top;
      return top && reportTop(top, question);
    },
    rates: async () => this.#newRates(),
    metrics: async () => {
      const metrics = this.#started?.service.metrics;
      if (metrics === undefined) return undefined;
      const families = await metrics.registry.read();
      const rows = function* () {
        yield* metricsParts('metrics', families);
        yield* metricsParts('stats', statFamilies(metrics.reference));
      };
      return { rows: rows(), about: null };
    },
  });
  #started: Started | undefined;
  /** Whether the server as a whole should get requests. */
  #serverHealth: HealthVerdict = { status: 'NOT_SERVING' };
  /** Resolves when the worker has started. */
  #starting: Promise<void> | undefined;

  /** Opens the ports. Rejects with StartError. */
  start(message: StartMessage): Promise<void> {
    this.#starting = this.#open(message);
    return this.#starting;
  }

  /** Handles a message other than `start`. Resolves with true when the worker has ended. */
  async receive(message: Exclude<ToWorker, StartMessage>): Promise<boolean> {
    switch (message.kind) {
      case 'ping':
        await send({ kind: 'pong' });
        break;
      case 'health':
        this.#serverHealth = message.verdict;
        break;
      case 'drain': {
        const started = this.#started;
        await started?.service.drain(message.why, (graceMs) => started.http.drain(graceMs));
        await send({ kind: 'drained' });
        break;
      }
      case 'end':
        await this.#closers.close();
        return true;
      case 'rows':
      case 'load':
      case 'switch':
        // A start that fails reports its error.
        await this.#starting?.then(
          () => this.#takePolicies(message),
          () => {},
        );
        break;
      default:
        await this.#calls.receive(message);
    }
    return false;
  }

  close(): Promise<void> {
    return this.#closers.close();
  }

  async #open({
    settings,
    version,
    terminal,
    policies: handover,
    tls: material,
    health,
  }: StartMessage): Promise<void> {
    this.#serverHealth = health;
    const closers = this.#closers;
    const worker = cluster.worker?.id;
    const { log, output } = createServerLogger(settings, terminal, worker);
    const policies = await WorkerPolicies.open(settings, log, handover, (round) => {
      void send({ kind: 'loaded', round });
    });
    const { provider } = policies;
    closers.add(async () => provider.close());
    // The primary process reads the same files, and logs changes and errors.
    const tls = openTlsFiles(settings, log.child({}, { level: 'silent' }), material);
    closers.add(async () => tls?.close());
    const parts = { settings, version, policies: provider, tls, clock: systemClock, log, output, worker };
    const service = openGrpcService(parts, closers);
    service.metrics.registry.show('weir_log_lines_dropped_total', () => output.dropped);
    service.store.onGivenUp(({ lines }) => void send({ kind: 'givenUp', lines }));
    const ports = new HttpPorts(
      { settings, clock: systemClock, log, metrics: () => this.#text('metrics') },
      closers,
    );
    const http = await ports.openPublic(
      service,
      () => (this.#serverHealth.status === 'SERVING' ? this.#serverHealth : service.serving.verdict),
      () => this.#text('health'),
    );
    const addresses = { grpc: await service.listen(), http: http.address };
    this.#started = { service, policies, http };
    service.onHealth(() => this.#sendHealth());
    provider.onReload(() => this.#sendHealth());
    await send({ kind: 'listening', addresses, health: stateOf(service, policies) });
  }

  async #takePolicies(message: Extract<ToWorker, { kind: 'rows' | 'load' | 'switch' }>): Promise<void> {
    const policies = this.#started?.policies;
    if (message.kind === 'rows') policies?.addRows(message.address, message.at, message.bytes);
    else if (message.kind === 'load') await policies?.load(message.round, message.updates);
    else policies?.switchTo(message.round);
  }

  async #text(of: SharedText): Promise<Buffer> {
    const text = await this.#calls.ask('text', of, TEXT_TIMEOUT_MS);
    if (text === undefined) throw new Error('the primary process did not answer in time');
    return Buffer.from(text.about);
  }

  /** Returns the decisions since the previous call, and sends the current latency of Redis. */
  #newRates(): Answer<'rates'> | undefined {
    const metrics = this.#started?.service.metrics;
    if (metrics === undefined) return undefined;
    const rows: RateCounts[] = [];
    metrics.takeNewDecisions((row) => rows.push(row));
    this.#sendHealth();
    return { rows, about: metrics.takeNewFailures() };
  }

  #sendHealth(): void {
    if (this.#started === undefined) return;
    const { service, policies } = this.#started;
    void send({ kind: 'health', health: stateOf(service, policies) });
  }
}

function stateOf(service: GrpcService, { provider }: WorkerPolicies): WorkerHealth {
  return {
    reason: service.serving.reason,
    store: service.store.name,
    storeUp: service.store.up(),
    redis: service.store.nodes(),
    policy: provider.current()?.version ?? 'none',
  };
}

/**
 * Sends a message to the primary process. Resolves once it is sent, so that this process may exit, or if the primary
 * process has exited. Node.js then ends this process, too.
 */
function send(message: FromWorker): Promise<void> {
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
    const worker = new Worker();
    const start = async (message: StartMessage): Promise<void> => {
      try {
        await worker.start(message);
      } catch (error) {
        await worker.close();
        if (!(error instanceof StartError)) throw error;
        await send({ kind: 'failed', lines: error.lines });
        resolve(false);
      }
    };
    process.on('message', (message: ToWorker) => {
      if (message.kind === 'start') start(message).catch(reject);
      else
        worker.receive(message).then((hasEnded) => {
          if (hasEnded) resolve(true);
        }, reject);
    });
    void send({ kind: 'ready' });
  });
}
