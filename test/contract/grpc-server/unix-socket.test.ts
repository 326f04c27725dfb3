/* Tests Unix domain sockets instead of ports. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { ECHO, Fixture, HOLD } from './fixture.js';

describe('Unix domain socket', () => {
  let fixture: Fixture;
  let folder: TempDir;
  let path: string;
  beforeEach(() => {
    fixture = new Fixture();
    folder = new TempDir();
    path = folder.join('grpc.sock');
  });

  /** Creates a stale socket file, as a killed process does. */
  const leaveStaleSocket = (): void => {
    const script =
      `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, ` +
      `'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', script]);
    expect(statSync(path).isSocket()).toBe(true);
  };

  const expectEcho = async (): Promise<void> => {
    const reply = await fixture.client(`unix:${path}`).unary(ECHO, Buffer.from('hello'));
    expect(reply).toEqual({ code: 0, message: Buffer.from('hello') });
  };

  test('serves, and takes the file away when it closes', async () => {
    const server = fixture.server();
    expect(await server.listen({ path })).toBe(0);
    await expectEcho();
    await server.close();
    expect(existsSync(path)).toBe(false);
  });

  test('drains as on a port, and takes the file away', async () => {
    const server = fixture.server();
    await server.listen({ path });
    const running = fixture.client(`unix:${path}`).unary(HOLD, Buffer.alloc(0));
    const { answer } = await fixture.untilHeld();
    const drained = server.drain(600_000);
    await waitFor('the end of the file', () => !existsSync(path));
    answer(Buffer.of(1));
    expect(await running).toEqual({ code: 0, message: Buffer.of(1) });
    await drained;
  });

  test('a file left by a process that was killed is replaced', async () => {
    leaveStaleSocket();
    await fixture.server().listen({ path });
    await expectEcho();
  });

  test('a socket that is served is EADDRINUSE, and goes on being served', async () => {
    await fixture.server().listen({ path });
    await expect(fixture.server().listen({ path })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await expectEcho();
  });

  test('a file that is no socket is EADDRINUSE, and stays', async () => {
    writeFileSync(path, 'precious');
    await expect(fixture.server().listen({ path })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect(readFileSync(path, 'utf8')).toBe('precious');
  });

  test('a path that is too long for a socket is refused, not cut', async () => {
    const long = folder.join('a'.repeat(100));
    await expect(fixture.server().listen({ path: long })).rejects.toMatchObject({ code: 'ENAMETOOLONG' });
  });

  test('a folder that is not there is the system error', async () => {
    await expect(fixture.server().listen({ path: folder.join('no', 'grpc.sock') })).rejects.toMatchObject({
      syscall: 'listen',
    });
  });
});
