import { expect, test } from '@jest/globals';
import { listenError } from '../../../src/server/start-error.js';

test.each([
  [
    'EACCES',
    '127.0.0.1:80',
    'the user that runs weir has no permission to listen on this port; choose a port above 1023',
  ],
  ['ENOTFOUND', 'weir.invalid:80', /^the host name is unknown; choose an address of this machine, /],
  ['EADDRINUSE', 'unix:/run/a', /^another process listens on this path, .*; choose another path$/],
  ['EOTHER', '127.0.0.1:8081', 'what the system says'],
])(
  '%s at %s: the address, the variables that choose it, the reason and the remedy',
  (code, address, reason) => {
    const error = Object.assign(new Error('what the system says'), { code });
    const [line = ''] = listenError('gRPC', address, 'GRPC_HOST, GRPC_PORT', error).lines;
    const before = `cannot listen on ${address} for gRPC (GRPC_HOST, GRPC_PORT): `;
    expect(line.slice(0, before.length)).toBe(before);
    expect(line.slice(before.length)).toMatch(reason);
  },
);
