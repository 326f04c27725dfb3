// Reads the messages that `npm run messages` lists.
import { isForPeople, isSpeaking, textsOf } from '../messages/sources.mjs';
import { withoutMarkup } from './markdown.mjs';

/**
 * Returns the messages of a file as blocks: [{line, text, kind: 'message', part}]. Each line and each column of a help
 * text is a block. A value that is known only at run time becomes a word in backquotes.
 */
export function messagesOf(path, source) {
  if (!isSpeaking(path)) return [];
  return textsOf(path, source)
    .filter(isForPeople)
    .flatMap(({ line, parts, isOneTemplate }) =>
      parts
        .map((part) => (typeof part === 'string' ? part : '`x`'))
        .join('')
        .split('\n')
        .flatMap((whole, at) =>
          whole.split(/\s{2,}/).map((text) => ({
            line: isOneTemplate ? line + at : line,
            text: withoutMarkup(text),
            kind: 'message',
            part: 'text',
          })),
        ),
    );
}
