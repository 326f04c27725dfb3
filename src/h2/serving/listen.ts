import { lstatSync, unlinkSync } from 'node:fs';
import { type AddressInfo, connect, type ListenOptions, type Server, type Socket } from 'node:net';

/**
 * Address to listen on: TCP (`port` 0 selects a free port), or a Unix domain socket. `reusePort` shares the port with
 * other processes that also set it (SO_REUSEPORT, Node.js 22.12). Without it, a process of node:cluster shares the port
 * of its primary process.
 */
export type ListenAddress =
  | { readonly host: string; readonly port: number; readonly reusePort?: boolean }
  | { readonly path: string };

/**
 * Maximum length of the path in sockaddr_un, without the final zero byte: 104 bytes on macOS, 108 on Linux. libuv
 * silently truncates longer paths.
 */
const MAX_PATH_BYTES = process.platform === 'darwin' ? 103 : 107;

/**
 * Starts listening. Resolves with the bound port, or 0 for a socket path; rejects with Node's system error. A stale
 * socket file, which a killed process leaves behind, is replaced; any other file is not. The permissions of the file
 * follow the umask of the process, and the file is removed when the server closes.
 */
export async function listen(server: Server, address: ListenAddress): Promise<number> {
  if ('path' in address && Buffer.byteLength(address.path) > MAX_PATH_BYTES) {
    const message = `listen ENAMETOOLONG: a socket path may have at most ${MAX_PATH_BYTES} bytes`;
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

/** Removes a stale socket file, which a killed process leaves behind. Returns whether a file was removed. */
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

/** A port that is shared by SO_REUSEPORT must not be shared through the primary process of node:cluster. */
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
    // Only ECONNREFUSED proves that no server listens. With a full backlog, or without the permission to connect, a
    // server may still listen.
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

/** Formats an address as `host:port`, with brackets around IPv6 addresses. */
export function formatHostPort(address: string | undefined, port: number | undefined): string {
  if (address === undefined) return 'unknown';
  const host = address.includes(':') ? `[${address}]` : address;
  return port === undefined ? host : `${host}:${port}`;
}

/**
 * Returns the name of the peer for logs: `host:port`, or, for a Unix domain socket, the `path` that the server listens
 * on.
 */
export function peerName(socket: Socket, path: string | undefined): string {
  return path ?? formatHostPort(socket.remoteAddress, socket.remotePort);
}
