/* Starts a real server with values of the reference's variables that occur in deployments. */
import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

let server: WeirServer | undefined;

/** Returns whether a port is open on an address of this machine other than 127.0.0.1. */
function isOpenElsewhere(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.2', port });
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux(
  'empty HOST and GRPC_HOST, as in a compose file with unset variables, mean all addresses',
  async () => {
    server = await startWeir({ env: { HOST: '', GRPC_HOST: '', DEBUG_HOST: '' } });
    expect(await isOpenElsewhere(server.httpPort)).toBe(true);
    expect(await isOpenElsewhere(server.grpcPort)).toBe(true);
    expect(await isOpenElsewhere(server.debugPort)).toBe(false);
  },
);

test('a Service named statsd in the namespace prevents no start, and causes a warning', async () => {
  server = await startWeir({
    env: {
      STATSD_PORT: 'tcp://10.96.0.7:9125',
      STATSD_SERVICE_HOST: '10.96.0.7',
      REDIS_PORT: 'tcp://10.96.0.8:6379',
    },
  });
  expect(server.process.lines().join('\n')).toContain(
    'weir ignores STATSD_PORT and uses the default 8125, because Kubernetes set the variable for the ' +
      'Service statsd; set a port number, or set enableServiceLinks: false',
  );
});
