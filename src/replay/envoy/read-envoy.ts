import { type Manifest, manifestsOf } from '../../config/manifests/manifest.js';
import { ProblemList } from '../../config/yaml/config-problem.js';
import type { YamlMap } from '../../config/yaml/yaml-document.js';
import { parseYamlDocuments } from '../../config/yaml/yaml-part.js';
import type { EntrySources } from '../entry-sources.js';
import type { Columns } from '../log/columns.js';
import type { LineValues, LogFormat } from '../log/log-format.js';
import { LogFields, type Need } from './log-fields.js';
import type { GatewayResource } from './read/gateway-listeners.js';
import type { Manager } from './read/http-connection-manager.js';
import { withProtoNames } from './read/proto-names.js';
import { readBootstrap, readConfigDump } from './read/read-bootstrap.js';
import { readGateway } from './read/read-gateway.js';
import { readIstio } from './read/read-istio.js';
import { readMapping } from './read/read-mapping.js';
import type { RequestCalls } from './route-table.js';

/** A file with a configuration of Envoy, Istio or Envoy Gateway. */
export interface EnvoyFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** A function from logged requests to calls of the rate limit service. */
export interface EnvoyCalls {
  /** Returns the calls that Envoy made for a request. */
  readonly callsOf: (values: LineValues) => readonly RequestCalls[];
  /** The values that the calls need from the log. Pass them to missingValues(). */
  readonly needs: readonly Need[];
  readonly sources: EntrySources;
  /** The formats of the access logs in the files. */
  readonly formats: readonly LogFormat[];
}

/** A configuration, and the problems in each of its files. With errors, the calls are not complete. */
export interface EnvoyConfig extends EnvoyCalls {
  readonly problems: readonly ProblemList[];
}

const NO_CALLS: readonly RequestCalls[] = [];
const GATEWAY_KINDS = ['BackendTrafficPolicy', 'HTTPRoute', 'GRPCRoute', 'Gateway', 'EnvoyProxy'];

const REMEDY =
  'pass a bootstrap of Envoy, the output of /config_dump, EnvoyFilter or BackendTrafficPolicy manifests, or a ' +
  'mapping with "domain" and "rate_limits"';

/**
 * Reads configurations of one kind or several, in any number of files and documents. `columns` gets the operators whose
 * values the calls need.
 */
export function readEnvoy(files: readonly EnvoyFile[], columns: Columns): EnvoyConfig {
  const log = new LogFields(columns);
  const managers: Manager[] = [];
  const manifests: { manifest: Manifest; problems: ProblemList }[] = [];
  const problemLists = files.map(({ name, bytes }) => {
    const problems = new ProblemList(name);
    const documents = parseYamlDocuments(bytes, problems);
    let isKnown = false;
    for (const document of documents) {
      const found = manifestsOf([document]);
      manifests.push(...found.map((manifest) => ({ manifest, problems })));
      isKnown ||= found.some(({ kind }) => kind === 'EnvoyFilter' || GATEWAY_KINDS.includes(kind));
      if (found.length > 0 || document.kind !== 'map') continue;
      const manager = readDocument(document, log, problems);
      if (manager === undefined) continue;
      isKnown = true;
      managers.push(manager);
    }
    if (!isKnown && problems.errorCount === 0)
      problems.error(
        { line: 1, column: 1 },
        '',
        `the file has no rate limits that can be replayed; ${REMEDY}`,
      );
    return problems;
  });
  const istio = manifests.filter(({ manifest }) => manifest.kind === 'EnvoyFilter');
  if (istio.length > 0) managers.push(readIstio(istio, log));
  const gateway = new Map<string, GatewayResource[]>();
  for (const kind of GATEWAY_KINDS)
    gateway.set(
      kind,
      manifests.filter(({ manifest }) => manifest.kind === kind),
    );
  if ((gateway.get('BackendTrafficPolicy') ?? []).length > 0 || (gateway.get('EnvoyProxy') ?? []).length > 0)
    managers.push(readGateway(gateway, log));
  const [manager] = managers;
  return {
    callsOf:
      manager !== undefined && managers.length === 1
        ? (values) => manager.find(values) ?? NO_CALLS
        : (values) => managers.flatMap(({ find }) => find(values) ?? NO_CALLS),
    needs: log.needs,
    sources: log.sources,
    formats: managers.flatMap(({ formats }) => formats),
    problems: problemLists,
  };
}

/** Reads a document that is not a Kubernetes resource. */
function readDocument(document: YamlMap, log: LogFields, problems: ProblemList): Manager | undefined {
  const message = withProtoNames(document) as YamlMap;
  if (message.fields.has('static_resources')) return readBootstrap(message, log, problems);
  if (message.fields.has('configs')) return readConfigDump(message, log, problems);
  if (message.fields.has('domain') || message.fields.has('rate_limits'))
    return readMapping(message, log, problems);
  return undefined;
}
