/** The arguments in Redis's error for an unknown command; the arguments of AUTH are the login. */
const ARGUMENTS = /, with args beginning with: .*/s;

/** Returns Redis's error without the command's arguments: a Redis whose AUTH is renamed returns the password. */
export function withoutArguments(text: string): string {
  return text.replace(ARGUMENTS, '');
}

/**
 * Sends AUTH. Rejects with Redis's error. Like other clients, accepts that Redis may not require the password.
 *
 * @param send sends AUTH with these arguments
 */
export async function authenticate(
  send: (args: readonly string[]) => Promise<unknown>,
  username: string | undefined,
  password: string,
): Promise<void> {
  try {
    await send(username === undefined ? [password] : [username, password]);
  } catch (error) {
    const { message } = error as Error;
    if (!/without any password configured|no password is set/.test(message)) throw error;
  }
}
