import type { ProblemList } from '../../../config/yaml/config-problem.js';
import { FieldReader } from '../../../config/yaml/field-reader.js';
import type { YamlMap } from '../../../config/yaml/yaml-document.js';
import type { LogFields } from '../log-fields.js';
import { compileRateLimits, type LoggedDescriptor } from '../rate-limit.js';
import { logFormat } from './access-log.js';
import type { Manager } from './http-connection-manager.js';

const KEYS = ['domain', 'log', 'json_format', 'text_format', 'rate_limits', 'local_cluster'];

/**
 * Reads a short mapping, for people without a configuration of Envoy. All requests have the same rate limits:
 *
 * ```yaml
 * domain: shop
 * log: { time: ts, path: request.uri, x-tenant: tenant }
 * rate_limits:
 *   - actions: [{ request_headers: { header_name: x-tenant, descriptor_key: tenant } }]
 * ```
 *
 * `log` has the members of JSON lines by meaning. Alternatively, write the `json_format` or `text_format` of the access
 * log.
 */
export function readMapping(document: YamlMap, log: LogFields, problems: ProblemList): Manager {
  const reader = new FieldReader(document, '', problems);
  reader.expectKeys(KEYS);
  const domain = reader.text('domain');
  if (domain === undefined)
    problems.error(document.at, 'domain', '"domain" is missing; write the domain of the policy');
  if (!reader.has('rate_limits'))
    problems.error(document.at, 'rate_limits', '"rate_limits" is missing; write a list as in Envoy');
  const localCluster = reader.text('local_cluster');
  const context = { log, localCluster, knowsClusters: false, knowsMetadata: false };
  const rateLimits = compileRateLimits(reader, 'filter', context);
  const format = logFormat(reader, `the format in ${problems.file}`);
  return {
    formats: format === undefined ? [] : [format],
    find: (values) => {
      const start: LoggedDescriptor[] = [];
      const end: LoggedDescriptor[] = [];
      for (const rateLimit of rateLimits) {
        const descriptor = rateLimit.descriptor(values, {});
        if (descriptor !== undefined) (rateLimit.applyOnStreamDone ? end : start).push(descriptor);
      }
      return start.length + end.length === 0 ? [] : [{ domain: domain ?? '', start, end }];
    },
  };
}
