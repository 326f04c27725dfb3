import { lstatSync, unlinkSync } from 'node:fs';
import { type AddressInfo, connect, type Server } from 'node:net';

/** Where to listen: TCP (`port` 0 takes a free one), or a Unix domain socket. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly path: string };

/**
 * Listens. Resolves with the port bound, 0 for a socket path; rejects with Node's system error. A socket file that nobody listens on any
 * more, as a killed process leaves it, is replaced; any other file is not. The file's rights come from the process's umask, and it goes when
 * the server is closed.
 */
export async function listen(server: Server, address: ListenAddress): Promise<number> {
  try {
    await tryListen(server, address);
  } catch (error) {
    if (!('path' in address) || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    if (!isSocket(address.path) || (await isServed(address.path))) throw error;
    unlinkSync(address.path);
    await tryListen(server, address);
  }
  return 'path' in address ? 0 : (server.address() as AddressInfo).port;
}

function tryListen(server: Server, address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function isSocket(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true;
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path });
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    // Only a refusal says that nobody is there; with a full backlog or without the right to connect somebody may be.
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}
