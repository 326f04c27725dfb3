import { timerMs } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { withTimeout } from '../../runtime/turns.js';
import { shown } from '../../shown-text.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Tracing } from '../calls/tracing.js';
import { readNamedFile } from '../named-file.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';
import type { Store } from '../store/store.js';
import type { StoreAddress } from './otlp-trace.js';
import { FLUSH_TIMEOUT_MS } from './tracing-bounds.js';

/** Dependencies of {@link openTracing}. */
export interface TracingParts {
  readonly settings: Settings;
  readonly version: string;
  readonly log: Logger;
  readonly store: Pick<Store, 'nodes'>;
}

/** Opens tracing, or returns undefined if the settings disable it. Throws {@link StartError}. */
export function openTracing(parts: TracingParts, closers: Closers): Tracing | undefined {
  const { settings, version, log, store } = parts;
  if (!settings.tracingEnabled) return undefined;
  // Loaded only if needed, because it takes a good part of a second.
  const { OtlpTracing } = require('./otlp-tracing.js') as typeof import('./otlp-tracing.js');
  try {
    checkExporterFiles(process.env);
    const tracing = new OtlpTracing({
      protocol: settings.tracingExporterProtocol,
      serviceName: settings.tracingServiceName,
      serviceNamespace: settings.tracingServiceNamespace,
      serviceInstanceId: settings.tracingServiceInstanceId,
      samplingRate: Math.min(1, settings.tracingSamplingRate),
      version,
      store: settings.redisUrl === '' ? undefined : () => addressOf(store),
      listener: exportListener(log),
      onWarning: (text) => log.warn(`OTEL_EXPORTER_OTLP_*: ${withoutAddressSecrets(text)}`),
    });
    closers.add(() => {
      const longestMs = Math.min(FLUSH_TIMEOUT_MS, timerMs(settings.shutdownGrace));
      return withTimeout(
        longestMs,
        tracing.shutdown().catch(() => {}),
        () => {},
      );
    });
    return tracing;
  } catch (error) {
    const reason = withoutAddressSecrets(error instanceof Error ? error.message : String(error));
    throw new StartError([`TRACING_ENABLED: the OTEL_EXPORTER_OTLP_* settings are invalid: ${reason}`]);
  }
}

/** Variables with files that the exporter reads itself, some of them not before it sends its first spans. */
const EXPORTER_FILE = /^OTEL_EXPORTER_OTLP_(?:TRACES_)?(?:CERTIFICATE|CLIENT_CERTIFICATE|CLIENT_KEY)$/;

/** Throws an Error if a file of the exporter cannot be read, or if reading it would block or take much memory. */
function checkExporterFiles(environment: NodeJS.ProcessEnv): void {
  for (const [variable, path = ''] of Object.entries(environment)) {
    if (EXPORTER_FILE.test(variable) && path.trim() !== '') readNamedFile(variable, path.trim());
  }
}

/** Returns the address of Redis, or an empty object if there are several servers. */
function addressOf(store: Pick<Store, 'nodes'>): StoreAddress {
  const [only, ...others] = store.nodes();
  if (only === undefined || others.length > 0) return {};
  const [, host, port] = /^(?:rediss?:\/\/)?(.*):(\d+)$/.exec(only.name) ?? [];
  return host === undefined ? { host: only.name } : { host, port: Number(port) };
}

/** Returns a listener that logs when the collector stops accepting spans, and when it accepts them again. */
function exportListener(log: Logger): { taken(): void; failed(error: Error | undefined): void } {
  let failing = false;
  return {
    taken() {
      if (failing) log.info('the OpenTelemetry collector accepts spans again');
      failing = false;
    },
    failed(error) {
      if (failing) return;
      failing = true;
      log.warn(
        { reason: reasonOf(error) },
        'the OpenTelemetry collector does not accept spans, so weir drops them; check OTEL_EXPORTER_OTLP_ENDPOINT, ' +
          'which is a URL such as http://collector:4318',
      );
    },
  };
}

function reasonOf(error: Error | undefined): string {
  const { message = '', code } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  return shown(
    withoutAddressSecrets(message === '' ? String(code ?? error?.name ?? 'no reason given') : message),
  );
}
