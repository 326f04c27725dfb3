/** The server cannot start; `lines` say why and what to do, one sentence each. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('; '));
    this.lines = lines;
  }
}

/** The server was told to end before it had started: nothing is wrong. */
export class StartStopped extends Error {
  override readonly name = 'StartStopped';
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is taken; stop what listens there, or choose another',
  EACCES: 'not allowed; choose a port above 1023',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'no such host name',
};

/** The same codes for a Unix domain socket. libuv says EACCES for a missing folder too. */
const SOCKET_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process serves it, or the file is no socket; choose another path',
  EACCES: 'its folder is missing, or not writable',
  ENAMETOOLONG: 'the path is too long for a socket; choose one below 100 bytes',
};

/** One clear line for a listener that cannot be opened. `variables` names the settings that choose the address. */
export function listenError(what: string, address: string, variables: string, error: unknown): StartError {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const reasons = address.startsWith('unix:') ? SOCKET_REASONS : LISTEN_REASONS;
  const reason = reasons[code] ?? message;
  return new StartError([`cannot listen on ${address} for ${what} (${variables}): ${reason}`]);
}
