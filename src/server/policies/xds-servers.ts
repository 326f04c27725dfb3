import type { Settings } from '../settings/settings-table.js';

/** Settings that may have a value for each management server, with their variables. */
const LISTS = {
  nodeId: ['xdsNodeId', 'CONFIG_GRPC_XDS_NODE_ID'],
  useTls: ['xdsUseTls', 'CONFIG_GRPC_XDS_SERVER_USE_TLS'],
  cert: ['xdsTlsCert', 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT'],
  key: ['xdsTlsKey', 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY'],
  caCert: ['xdsTlsCaCert', 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT'],
  subjectAltName: ['xdsTlsSan', 'CONFIG_GRPC_XDS_SERVER_TLS_SAN'],
} as const;

export type XdsSettings = Pick<Settings, 'xdsServerUrl' | (typeof LISTS)[keyof typeof LISTS][0]>;

/** A management server, and the settings of the connection to it. Files are named by their paths; '' for none. */
export interface XdsServer {
  /** `host:port`. */
  readonly url: string;
  readonly nodeId: string;
  readonly useTls: boolean;
  readonly cert: string;
  readonly key: string;
  readonly caCert: string;
  /** Name that the server's certificate must contain; '' for the host of the URL. */
  readonly subjectAltName: string;
}

/** Returns the management servers, after {@link xdsServerFaults} found no faults. */
export function xdsServers(settings: XdsSettings): readonly XdsServer[] {
  return settings.xdsServerUrl.map((url, index) => {
    const of = <T>(values: readonly T[]): T | undefined => (values.length > 1 ? values[index] : values[0]);
    return {
      url,
      nodeId: of(settings.xdsNodeId) ?? '',
      useTls: of(settings.xdsUseTls) ?? false,
      cert: of(settings.xdsTlsCert) ?? '',
      key: of(settings.xdsTlsKey) ?? '',
      caCert: of(settings.xdsTlsCaCert) ?? '',
      subjectAltName: of(settings.xdsTlsSan) ?? '',
    };
  });
}

/** Returns the variables with another number of values than there are management servers, and why each is refused. */
export function xdsServerFaults(
  settings: XdsSettings,
): readonly (readonly [variable: string, why: string])[] {
  const { xdsServerUrl: urls } = settings;
  const faults: [variable: string, why: string][] = [];
  const refuse = (why: string): number => faults.push(['CONFIG_GRPC_XDS_SERVER_URL', why]);
  if (urls.length === 0 || urls.includes(''))
    refuse('an address is empty; write host:port, or several addresses with one comma between two');
  if (urls.some((url) => /^https?:\/\//i.test(url)))
    refuse(
      'the value is a URL; use host:port without a scheme, and set CONFIG_GRPC_XDS_SERVER_USE_TLS=true for TLS',
    );
  const repeated = urls.find((url, index) => url !== '' && urls.indexOf(url) !== index);
  if (repeated !== undefined) refuse(`the address ${repeated} occurs twice; remove one of the two`);
  for (const [field, name] of Object.values(LISTS)) {
    const { length } = settings[field];
    if (length > 1 && length !== urls.length)
      faults.push([
        name,
        `there are ${length} values, but CONFIG_GRPC_XDS_SERVER_URL contains ${urls.length}; write one value for all ` +
          'management servers, or one for each',
      ]);
  }
  return faults;
}
