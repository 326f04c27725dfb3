import { formatProblem } from '../../config/yaml/config-problem.js';
import { MAX_FILE_BYTES } from '../../config/yaml/yaml-value.js';
import { workingDirectoryHint } from '../../runtime/working-directory.js';
import type { Logger } from '../../telemetry/logger.js';
import { defaultMapping } from '../../telemetry/mapping/default-mapping.js';
import { MappedMetrics } from '../../telemetry/mapping/mapped-metrics.js';
import { Mapper } from '../../telemetry/mapping/mapper.js';
import type { Mapping } from '../../telemetry/mapping/mapping.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { extraTags } from '../../telemetry/statsd/stats-sink.js';
import { readNamedFile } from '../named-file.js';
import { ConfigWarnings } from '../policies/policy-log.js';
import { servesReference } from '../settings/settings-check.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';
import { readMappingFile } from './mapping-file.js';

/** Maximum number of problems of a mapping file in a message. */
const MAX_SHOWN = 20;

/** Returns the mapping that the settings select. Throws {@link StartError} with the problems of its file. */
function mappingOf(settings: Settings, log: Logger): Mapping {
  const { prometheusMapper: file } = settings;
  if (file === '') return defaultMapping(settings.prometheusMillis);
  let bytes: Uint8Array;
  try {
    bytes = readNamedFile('PROMETHEUS_MAPPER_YAML', file, MAX_FILE_BYTES);
  } catch (error) {
    const { cause, message } = error as Error;
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') {
      // Envoy Gateway mounts the file from an optional ConfigMap that may not exist yet. The reference starts without
      // it, too.
      log.warn(
        `PROMETHEUS_MAPPER_YAML: ${file} does not exist${workingDirectoryHint(file)}; weir uses the default mapping`,
      );
      return defaultMapping(settings.prometheusMillis);
    }
    throw new StartError([message]);
  }
  const { mapping, errors, warnings } = readMappingFile(file, bytes);
  if (errors.length > 0) {
    const shown = errors.slice(0, MAX_SHOWN).map(formatProblem);
    throw new StartError([
      ...shown,
      `PROMETHEUS_MAPPER_YAML: ${file} cannot be used; correct the errors above, or unset the variable`,
    ]);
  }
  new ConfigWarnings(log).logNew('', warnings);
  return mapping;
}

/**
 * Exposes the reference's statistics of this process as metrics, with the names of the mapping. Throws {@link
 * StartError} if the mapping is invalid.
 */
export function exposeReference(settings: Settings, metrics: Metrics, log: Logger): void {
  if (!servesReference(settings)) return;
  const mapped = new MappedMetrics({
    stats: metrics.reference,
    mapper: new Mapper(mappingOf(settings, log)),
    labels: extraTags(settings.extraTags),
    quantiles: settings.workers === 1,
    now: () => performance.now(),
  });
  metrics.registry.addSource(() => mapped.families());
}
