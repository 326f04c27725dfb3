import { lstatSync, unlinkSync } from 'node:fs';
import { type AddressInfo, connect, type ListenOptions, type Server } from 'node:net';

/**
 * Where to listen: TCP (`port` 0 takes a free one), or a Unix domain socket. `reusePort` shares the port with other
 * processes that ask for it too (SO_REUSEPORT; Node.js 22.12), where a process of node:cluster would share its
 * primary's.
 */
export type ListenAddress =
  | { readonly host: string; readonly port: number; readonly reusePort?: boolean }
  | { readonly path: string };

/**
 * Room for the path in sockaddr_un, without the final zero: 104 bytes on macOS, 108 on Linux. libuv cuts longer ones in
 * silence.
 */
const MAX_PATH_BYTES = process.platform === 'darwin' ? 103 : 107;

/**
 * Listens. Resolves with the port bound, 0 for a socket path; rejects with Node's system error. A socket file that
 * nobody listens on any more, as a killed process leaves it, is replaced; any other file is not. The file's rights come
 * from the process's umask, and it goes when the server is closed.
 */
export async function listen(server: Server, address: ListenAddress): Promise<number> {
  if ('path' in address && Buffer.byteLength(address.path) > MAX_PATH_BYTES) {
    const message = `listen ENAMETOOLONG: a socket path holds at most ${MAX_PATH_BYTES} bytes`;
    throw Object.assign(new Error(message), { code: 'ENAMETOOLONG', syscall: 'listen' });
  }
  try {
    await tryListen(server, address);
  } catch (error) {
    if (!('path' in address) || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    if (!(await removeStaleSocket(address.path))) throw error;
    await tryListen(server, address);
  }
  return 'path' in address ? 0 : (server.address() as AddressInfo).port;
}

/**
 * Removes a socket file that nobody listens on any more, as a killed process leaves it, and says whether there was one.
 */
export async function removeStaleSocket(path: string): Promise<boolean> {
  if (!isSocket(path) || (await isServed(path))) return false;
  unlinkSync(path);
  return true;
}

function tryListen(server: Server, address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(toListenOptions(address), () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Sharing a port by SO_REUSEPORT means not sharing it through the primary of node:cluster. */
function toListenOptions(address: ListenAddress): ListenOptions & { reusePort?: boolean } {
  if ('path' in address || address.reusePort !== true) return { ...address };
  return { ...address, exclusive: true };
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
