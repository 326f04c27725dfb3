import type { Finding } from '../findings.js';

/**
 * Reports a probe whose command uses a program that the image of weir does not contain. `words` are the words of the
 * command.
 */
export function healthFindings(about: string, words: readonly string[]): readonly Finding[] {
  const program = /(?:^|[\s/;&|])(wget|curl|nc|grpc_health_probe|grpc-health-probe)(?=$|\s)/.exec(
    words.join(' '),
  )?.[1];
  if (program === undefined) return [];
  const text =
    `this check would fail, because the weir image does not contain ${program}. Run \`weir health\` ` +
    'instead.';
  return [{ about, text }];
}
