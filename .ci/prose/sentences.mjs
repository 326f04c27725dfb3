// Splits a block of prose into sentences.

/** Points that end no sentence. */
const ABBREVIATION = /\b(?:e\.g|i\.e|etc|vs|approx|cf|incl|resp|no|Nos?|sec|St|Dr|[A-Z])\.$/;

/** Returns [{text, line, first}]: the sentences of a block, each on one line. `first`: it is the block's first one. */
export function sentencesOf(block) {
  const sentences = [];
  const end = /[.!?]["'`)\]]*(?=\s|$)/g;
  let from = 0;
  const add = (to) => {
    const raw = block.text.slice(from, to);
    const text = raw.replace(/\s+/g, ' ').trim();
    if (text !== '') {
      const start = from + raw.search(/\S/);
      const line = block.line + (block.text.slice(0, start).match(/\n/g)?.length ?? 0);
      sentences.push({ text, line, first: sentences.length === 0 });
    }
    from = to;
  };
  for (let match = end.exec(block.text); match !== null; match = end.exec(block.text)) {
    const to = match.index + match[0].length;
    if (!ABBREVIATION.test(block.text.slice(from, match.index + 1))) add(to);
  }
  add(block.text.length);
  return sentences;
}

/** Number of words: runs of characters with a letter or a digit in them. */
export const wordsOf = (text) => text.split(' ').filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
