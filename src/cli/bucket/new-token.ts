import { newAdminToken, tokenNameFault } from '../../admin/admin-tokens.js';
import { readArguments } from '../arguments.js';
import { EXIT, type Io } from '../io.js';

/** Action of `weir bucket` that calls no server. */
export const NEW_TOKEN = 'new-token';

/** Runs `weir bucket new-token`: prints a new token and its line for ADMIN_TOKENS_FILE. The token is not stored. */
export function runNewToken(args: readonly string[], { out, err }: Pick<Io, 'out' | 'err'>): number {
  const usage = (sentence: string): number => {
    err(`weir bucket ${NEW_TOKEN}: ${sentence}; see weir bucket --help\n`);
    return EXIT.USAGE;
  };
  const parsed = readArguments('bucket', args, { json: { type: 'boolean' } });
  if (typeof parsed === 'string') {
    err(parsed);
    return EXIT.USAGE;
  }
  const [name, right, ...others] = parsed.positionals;
  if (name === undefined || others.length > 0)
    return usage('specify a name for the token, and its permission: read or write');
  const fault = tokenNameFault(name);
  if (fault !== undefined) return usage(fault);
  if (right !== 'read' && right !== 'write') {
    return usage('specify the permission after the name: read, or write, which includes read');
  }
  const { token, line } = newAdminToken(name, right);
  out(
    parsed.values.json === true
      ? `${JSON.stringify({ token, line })}\n`
      : `The token, which is shown only once:\n  ${token}\nThe line for ADMIN_TOKENS_FILE:\n  ${line}\n`,
  );
  return EXIT.OK;
}
