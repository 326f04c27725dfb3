const FIELDS: readonly (readonly [name: string, value: string])[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language', ''],
  ['accept-ranges', ''],
  ['accept', ''],
  ['access-control-allow-origin', ''],
  ['age', ''],
  ['allow', ''],
  ['authorization', ''],
  ['cache-control', ''],
  ['content-disposition', ''],
  ['content-encoding', ''],
  ['content-language', ''],
  ['content-length', ''],
  ['content-location', ''],
  ['content-range', ''],
  ['content-type', ''],
  ['cookie', ''],
  ['date', ''],
  ['etag', ''],
  ['expect', ''],
  ['expires', ''],
  ['from', ''],
  ['host', ''],
  ['if-match', ''],
  ['if-modified-since', ''],
  ['if-none-match', ''],
  ['if-range', ''],
  ['if-unmodified-since', ''],
  ['last-modified', ''],
  ['link', ''],
  ['location', ''],
  ['max-forwards', ''],
  ['proxy-authenticate', ''],
  ['proxy-authorization', ''],
  ['range', ''],
  ['referer', ''],
  ['refresh', ''],
  ['retry-after', ''],
  ['server', ''],
  ['set-cookie', ''],
  ['strict-transport-security', ''],
  ['transfer-encoding', ''],
  ['user-agent', ''],
  ['vary', ''],
  ['via', ''],
  ['www-authenticate', ''],
];

/** Number of entries of the static table. The indices of the dynamic table follow (RFC 7541 section 2.3.3). */
export const STATIC_TABLE_LENGTH = FIELDS.length;
/** Names of the entries of the static table (RFC 7541 appendix A), by index. Index 0 is not used. */
export const STATIC_NAMES: readonly string[] = ['', ...FIELDS.map(([name]) => name)];
/** Values of the entries, by index. */
export const STATIC_VALUES: readonly string[] = ['', ...FIELDS.map(([, value]) => value)];

const indexOfName = new Map<string, number>();
const indexOfField = new Map<string, number>();
FIELDS.forEach(([name, value], position) => {
  if (!indexOfName.has(name)) indexOfName.set(name, position + 1);
  indexOfField.set(`${name}\0${value}`, position + 1);
});

/** The lowest index; 0 if the table does not have the name. */
export function staticNameIndex(name: string): number {
  return indexOfName.get(name) ?? 0;
}

/** 0 if the table does not have the field. */
export function staticFieldIndex(name: string, value: string): number {
  return indexOfField.get(`${name}\0${value}`) ?? 0;
}
