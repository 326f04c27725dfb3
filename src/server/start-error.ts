/** weir cannot start. Each of `lines` is a sentence with a reason and a remedy. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('; '));
    this.lines = lines;
  }
}

/** The start was stopped before it finished. This is not an error. */
export class StartStopped extends Error {
  override readonly name = 'StartStopped';
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is already in use; stop the process that uses the port, or choose another port',
  EACCES: 'the user that runs weir has no permission to listen on this port; choose a port above 1023',
  EADDRNOTAVAIL:
    'this machine does not have this address; choose an address of this machine, 127.0.0.1, or 0.0.0.0 ' +
    'for all addresses',
  ENOTFOUND:
    'the host name is unknown; choose an address of this machine, 127.0.0.1, or 0.0.0.0 for all addresses',
};

/** Reasons for a Unix domain socket. libuv reports EACCES for a missing folder, too. */
const SOCKET_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another process listens on this path, or the path belongs to a file that is not a socket; choose another path',
  EACCES:
    'the directory does not exist, or the user that runs weir has no permission to write to it; create ' +
    'the directory, grant write permission, or choose another path',
  ENAMETOOLONG: 'the path is too long for a socket; choose a path with fewer than 100 bytes',
};

/** Returns the error for a listener that cannot be opened. `variables` names the settings that define its address. */
export function listenError(what: string, address: string, variables: string, error: unknown): StartError {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const reasons = address.startsWith('unix:') ? SOCKET_REASONS : LISTEN_REASONS;
  const reason = reasons[code] ?? message;
  return new StartError([`cannot listen on ${address} for ${what} (${variables}): ${reason}`]);
}
