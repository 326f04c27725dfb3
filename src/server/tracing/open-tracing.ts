import { timerMs } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { withTimeout } from '../../runtime/turns.js';
import { readNamedFile } from '../followed-files.js';
import { StartError } from '../start-error.js';
import type { OtlpTracing, TracingParts } from './otlp-tracing.js';

/** Maximum milliseconds that the exit of the process waits for the last spans. */
export const FLUSH_TIMEOUT_MS = 2000;

/** Opens tracing, or returns undefined if the settings disable it. Throws {@link StartError}. */
export function openTracing(parts: TracingParts, closers: Closers): OtlpTracing | undefined {
  if (!parts.settings.tracingEnabled) return undefined;
  // Loaded only if needed, because it takes a good part of a second.
  const { OtlpTracing } = require('./otlp-tracing.js') as typeof import('./otlp-tracing.js');
  try {
    checkExporterFiles(process.env);
    const tracing = new OtlpTracing(parts);
    closers.add(() => {
      const longestMs = Math.min(FLUSH_TIMEOUT_MS, timerMs(parts.settings.shutdownGrace));
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
