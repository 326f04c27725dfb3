import { expect, test } from '@jest/globals';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { startProcess } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir } from '../support/weir/weir.js';

test('npm start passes arguments and signals to the server', async () => {
  const [grpcPort = 0, httpPort = 0, debugPort = 0] = await freePorts(3);
  const ports = [
    '--grpc-port',
    String(grpcPort),
    '--port',
    String(httpPort),
    '--debug-port',
    String(debugPort),
  ];
  const npm = startProcess('npm', ['start', '--', ...ports], { cwd: repositoryRoot });
  await waitFor(
    'npm start to serve',
    async () => {
      if (!npm.isRunning()) return true;
      return (await httpRequest(httpPort, '/healthcheck')).status === 200 ? true : undefined;
    },
    120_000,
  );
  expect(npm.lines().join('\n')).toContain(`127.0.0.1:${grpcPort}`);
  npm.signal('SIGTERM');
  await npm.exited;
  // npm itself ends only after the server has.
  expect(npm.lines().join('\n')).toContain('drained');
  await expect(httpRequest(httpPort, '/healthcheck')).rejects.toThrow(/ECONNREFUSED/);
}, 150_000);

test('under npm one press of Ctrl-C drains even where it arrives twice, a second press ends at once', async () => {
  const npm = { npm_lifecycle_event: 'start' };
  const once = await startWeir({ env: { ...npm, SHUTDOWN_DRAIN_DELAY: '1s' } });
  once.process.signal('SIGINT');
  await once.process.waitForLine(/draining/);
  once.process.signal('SIGINT');
  await expect(once.process.exited).resolves.toEqual({ code: 0, signal: null });

  const twice = await startWeir({ env: { ...npm, SHUTDOWN_DRAIN_DELAY: '1h' } });
  twice.process.signal('SIGINT');
  await twice.process.waitForLine(/draining/);
  await waitFor('the second press to end it', () => {
    twice.process.signal('SIGINT');
    return twice.process.isRunning() ? undefined : true;
  });
  await expect(twice.process.exited).resolves.toEqual({ code: 130, signal: null });
}, 60_000);
