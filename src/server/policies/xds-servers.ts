import { shownAddress } from '../../runtime/shown-address.js';
import type { Settings } from '../settings/settings-table.js';
import { readPairs } from '../settings/settings-values.js';

/** Settings that may have a value for each management server, with their variables. */
const LISTS = {
  nodeId: ['xdsNodeId', 'CONFIG_GRPC_XDS_NODE_ID'],
  useTls: ['xdsUseTls', 'CONFIG_GRPC_XDS_SERVER_USE_TLS'],
  cert: ['xdsTlsCert', 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT'],
  key: ['xdsTlsKey', 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY'],
  caCert: ['xdsTlsCaCert', 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT'],
  subjectAltName: ['xdsTlsSan', 'CONFIG_GRPC_XDS_SERVER_TLS_SAN'],
} as const;

export type XdsSettings = Pick<
  Settings,
  'xdsServerUrl' | 'xdsHeaders' | (typeof LISTS)[keyof typeof LISTS][0]
>;

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
  /** Headers of the call. They may be credentials, so no other server gets them. */
  readonly headers: ReadonlyMap<string, string>;
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
      headers: headersOf(url, settings) ?? new Map(),
    };
  });
}

/** Matches an item that begins with the address of a server: `host:port/name:value`. */
const WITH_SERVER = /^(?:\[[^\]]*\]|[^:=/]+):\d+\/[^:=]+[:=]/;

/**
 * Returns the headers for a management server: those whose item begins with its address, and if it is the only server,
 * all others as well. Returns undefined if one of them is not a name and a value.
 */
function headersOf(
  url: string,
  { xdsServerUrl: urls, xdsHeaders }: XdsSettings,
): ReadonlyMap<string, string> | undefined {
  const prefix = `${url}/`;
  const items = xdsHeaders.flatMap((item) => {
    if (item.startsWith(prefix)) return item.slice(prefix.length);
    return urls.length > 1 ? [] : item;
  });
  return readPairs(items.join(), ':', '=');
}

/** Returns why the headers are refused. The sentence does not repeat a header, which may be a credential. */
function headersFault(settings: XdsSettings): string | undefined {
  const { xdsServerUrl: urls, xdsHeaders: items } = settings;
  const others = items.filter((item) => !urls.some((url) => item.startsWith(`${url}/`)));
  // With one server, plain items are valid. An item of another server would send its header to the wrong one.
  if (urls.length === 1 && others.some((item) => WITH_SERVER.test(item))) {
    return (
      'an item begins with the address of a server that CONFIG_GRPC_XDS_SERVER_URL does not contain; remove the ' +
      'item, or write it as name:value'
    );
  }
  if (urls.length > 1 && others.length > 0) {
    return (
      `CONFIG_GRPC_XDS_SERVER_URL contains ${urls.length} management servers, and an item does not begin with the ` +
      'address of one of them; write each item as host:port/name:value, so that no other server gets the header'
    );
  }
  if (urls.every((url) => headersOf(url, settings) !== undefined)) return undefined;
  return `the value is not a list such as ${urls.length > 1 ? 'host:port/name:value' : 'name:value,name:value'}`;
}

/** Returns the variables that do not fit the management servers, and why each is refused. */
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
  if (repeated !== undefined)
    refuse(`the address ${shownAddress(repeated)} occurs twice; remove one of the two`);
  for (const [field, name] of Object.values(LISTS)) {
    const { length } = settings[field];
    if (length > 1 && length !== urls.length)
      faults.push([
        name,
        `there are ${length} values, but CONFIG_GRPC_XDS_SERVER_URL contains ${urls.length}; write one value for all ` +
          'management servers, or one for each',
      ]);
  }
  const headers = headersFault(settings);
  if (headers !== undefined) faults.push(['CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS', headers]);
  return faults;
}
