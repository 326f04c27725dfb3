import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from '@jest/globals';
import { repositoryRoot } from '../process/tools.js';
import type { ComposeFile } from './compose.js';

/**
 * Defines tests of a compose file with Redis servers. `passwords` has the variable with the password of each of them,
 * and `readers` are further services that read the passwords.
 */
export function testComposeWithRedis(
  file: ComposeFile,
  passwords: Readonly<Record<string, string>>,
  readers: readonly string[],
): void {
  test('mounts and builds from existing files, and publishes on loopback only', () => {
    for (const path of file.paths) expect([path, existsSync(path)]).toEqual([path, true]);
    expect(file.publishedPorts).toHaveLength(3);
    for (const port of file.publishedPorts) expect(port).toMatch(/^127\.0\.0\.1:(10000|8080|8081):/);
  });

  test.each(Object.entries(passwords))(
    '%s has few rights and a health check, and does not restart by itself',
    (name, password) => {
      const { read_only, cap_drop, volumes, healthcheck, restart } = file.service(name);
      expect({ read_only, cap_drop, restart }).toEqual({ read_only: true, cap_drop: ['ALL'] });
      expect(volumes).toContain('/data');
      expect(healthcheck?.test[1]).toContain(`REDISCLI_AUTH="$$${password}"`);
    },
  );

  test('reads passwords from a file that git ignores, and no Redis evicts', () => {
    for (const name of [...readers, ...Object.keys(passwords)])
      expect([name, file.service(name).env_file]).toEqual([name, 'passwords.env']);
    const ignored = readFileSync(join(repositoryRoot, '.gitignore'), 'utf8').split('\n');
    expect(ignored).toContain(relative(repositoryRoot, join(file.folder, 'passwords.env')));
    expect(file.text('redis.conf')).toMatch(/^maxmemory-policy noeviction$/m);
  });
}
