import { expect, test } from '@jest/globals';
import { xdsServers } from '../../../../src/server/policies/xds-servers.js';
import { readSettings } from '../../../../src/server/settings/read-settings.js';

/** Returns the headers for each management server. */
function headersOf(urls: string, headers: string): unknown {
  const read = readSettings({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: urls,
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: headers,
  });
  return read.ok
    ? xdsServers(read.settings).map((server) => Object.fromEntries(server.headers))
    : read.errors;
}

test('the only management server gets all headers, as in envoyproxy/ratelimit', () => {
  const plain = 'authorization:Basic YTpi==, x-team=limits,x-range:1/2,x-url:http://b:1/x:y,x-to:b:1/c:d';
  expect(headersOf('a:1', plain)).toEqual([
    {
      authorization: 'Basic YTpi==',
      'x-team': 'limits',
      'x-range': '1/2',
      'x-url': 'http://b:1/x:y',
      'x-to': 'b:1/c:d',
    },
  ]);
  expect(headersOf('a:1', '')).toEqual([{}]);
});

test('the only management server also gets the items that begin with its address', () => {
  expect(headersOf('a:1', 'a:1/authorization:Bearer a,x-team:limits,a:1/b:1/x:y')).toEqual([
    { authorization: 'Bearer a', 'x-team': 'limits', b: '1/x:y' },
  ]);
  expect(headersOf('[::1]:18', '[::1]:18/x-team=limits')).toEqual([{ 'x-team': 'limits' }]);
});

test.each(['b:1/authorization:Bearer b', 'a:1/x:y,a:18/authorization=Bearer b', '[::1]:18/x-team:limits'])(
  'the only management server gets no items of others: %s',
  (headers) => {
    expect(headersOf('a:1', headers)).toEqual([
      expect.stringMatching(
        /^CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: .*an item begins with the address of a server that CONFIG_GRPC/,
      ),
    ]);
  },
);

test('each of several management servers gets its own headers, and no others', () => {
  const headers = 'a:1/authorization:Bearer a, [::1]:18/authorization:Bearer b/c:d,[::1]:18/x-team:limits';
  expect(headersOf('a:1,a:18,[::1]:18', headers)).toEqual([
    { authorization: 'Bearer a' },
    {},
    { authorization: 'Bearer b/c:d', 'x-team': 'limits' },
  ]);
  expect(headersOf('a:1,b:1', '')).toEqual([{}, {}]);
});
