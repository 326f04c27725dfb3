import { wordsOf } from '../sentences.mjs';

/**
 * Maximum number of words in a sentence. The guide is 25, but a list of technical terms can make a good sentence
 * longer.
 */
const MAX_WORDS = { doc: 30, comment: 35, message: 30 };

export const LENGTH = [
  {
    name: 'semicolons',
    find: ({ text, part }) =>
      part !== 'cell' && /(?:;\s.*){2}/.test(text) ? text.slice(text.indexOf(';')) : null,
    written: 'The cache is full; a request waits; it is denied later.',
    better: 'The cache is full. The request waits and is denied later.',
    passes: 'The cache is full; the request waits.',
  },
  {
    name: 'long-sentence',
    find: ({ text, kind }) => {
      const words = wordsOf(text);
      return words > MAX_WORDS[kind] ? `${words} words` : null;
    },
    written: `${'A limit that many callers share, '.repeat(5)}is full and denies them all of their next requests.`,
    better:
      'A shared limit denies callers when its bucket is empty. The log reports the rule and the domain once a minute.',
    passes: 'A limit that many callers share drains quickly.',
  },
];
