/** The arguments in Redis's error for an unknown command; the arguments of AUTH are the login. */
const ARGUMENTS = /, with args beginning with: .*/s;

/** Returns Redis's error without the command's arguments: a Redis whose AUTH is renamed returns the password. */
export function withoutArguments(text: string): string {
  return text.replace(ARGUMENTS, '');
}

/** Returns whether `error`, a reply to AUTH, means that Redis requires no password. */
export function needsNoPassword({ message }: Error): boolean {
  return /without any password configured|no password is set/.test(message);
}
