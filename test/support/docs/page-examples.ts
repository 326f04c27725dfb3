/*
 * Parses the examples of the manual. A ```yaml block whose first line is `# example: <name>` is a policy file. The
 * ```console blocks that follow it in the same section contain commands (`$ …`, continued by backslashes) with their
 * answers.
 */

/** A command with its answer on the page. Line numbers start at 0. */
export interface PageCommand {
  /** Path of the page, relative to the root of the repository. */
  readonly page: string;
  /** Shell text without `$ `, with continuation lines unchanged. */
  readonly text: string;
  readonly line: number;
  readonly answer: readonly string[];
  /** First line of the answer. */
  readonly answerLine: number;
}

/** A policy file with the commands that follow it. */
export interface PageExample {
  readonly page: string;
  readonly name: string;
  readonly section: string;
  readonly policy: string;
  readonly line: number;
  readonly commands: readonly PageCommand[];
}

/** A section of a page: the text from a heading to the next heading. */
export interface PageSection {
  readonly page: string;
  readonly title: string;
  readonly examples: readonly PageExample[];
}

interface OpenExample extends PageExample {
  readonly commands: PageCommand[];
}
interface OpenSection extends PageSection {
  readonly examples: OpenExample[];
}

const EXAMPLE = /^# example: ([\w-]+)$/;

/** Finds sections and examples. Throws an error for a repeated name or an unclosed block. */
export function pageSections(page: string, text: string): PageSection[] {
  const lines = text.split('\n');
  const sections: OpenSection[] = [{ page, title: '', examples: [] }];
  const names = new Set<string>();
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as string;
    const section = sections.at(-1) as OpenSection;
    const heading = /^(#+) (.*)$/.exec(line);
    if (heading !== null) {
      sections.push({ page, title: heading[2] ?? '', examples: [] });
      continue;
    }
    const fence = /^```(\w*)/.exec(line);
    if (fence === null) continue;
    const end = lines.indexOf('```', at + 1);
    if (end === -1) throw new Error(`${page}:${at + 1}: this block is not closed`);
    const block = lines.slice(at + 1, end);
    const name = fence[1] === 'yaml' ? EXAMPLE.exec(block[0] ?? '')?.[1] : undefined;
    if (name !== undefined) {
      if (names.has(name)) throw new Error(`${page}:${at + 2}: there is another example ${name} above`);
      names.add(name);
      const policy = `${block.join('\n')}\n`;
      section.examples.push({ page, name, section: section.title, policy, line: at, commands: [] });
    } else if (fence[1] === 'console') {
      section.examples.at(-1)?.commands.push(...commandsOf(page, block, at + 1));
    }
    at = end;
  }
  return sections;
}

/** Returns the commands of a console block whose first line is `from`, with their answers. */
export function commandsOf(page: string, block: readonly string[], from: number): PageCommand[] {
  const commands: PageCommand[] = [];
  for (let at = 0; at < block.length; ) {
    const line = block[at] as string;
    if (!line.startsWith('$ ')) throw new Error(`${page}:${from + at + 1}: no command above this answer`);
    let next = at + 1;
    while (block[next - 1]?.endsWith('\\')) next++;
    const text = block.slice(at, next).join('\n').slice(2);
    const answers = block.slice(next);
    const until = answers.findIndex((answer) => answer.startsWith('$ '));
    const answer = until === -1 ? answers : answers.slice(0, until);
    commands.push({ page, text, line: from + at, answer, answerLine: from + next });
    at = next + answer.length;
  }
  return commands;
}

/** Matches the token of a hold in an answer, as the second group. */
const HOLD_TOKEN = /("hold": ?")([\w:.~%@/#!&^*,-]{40,})(")/g;

/**
 * Values that differ in each run in spite of the fixed clock, and values that the fixed clock cannot measure: the text
 * between the groups.
 */
const MEASURED: readonly RegExp[] = [
  /("micros":)\d+()/g,
  /(\bonly )[\d.]+(s of data so far)/g,
  // IDs of holds are random.
  /^(.* {2})A[\w-]{27,38}()$/gm,
];

const masked = (text: string) =>
  MEASURED.reduce((rest, part) => rest.replace(part, '$1-$2'), text.replace(HOLD_TOKEN, '$1-$3')).split('\n');

/**
 * Returns an answer with the page's text for measured values, so that it equals the page's answer unless something else
 * differs.
 */
export function withShown(shown: readonly string[], answer: string): string[] {
  const maskedShown = masked(shown.join('\n'));
  const maskedAnswer = masked(answer);
  return answer
    .split('\n')
    .map((line, at) => (maskedAnswer[at] === maskedShown[at] ? (shown[at] ?? line) : line));
}

/** Maps the tokens of holds in the answers of a page to the tokens of this run. */
export class HoldTokens {
  readonly #real = new Map<string, string>();

  /** Notes the tokens of an answer, which commands below it on the page may contain. */
  note(shown: readonly string[], printed: string): void {
    const real = [...printed.matchAll(HOLD_TOKEN)];
    [...shown.join('\n').matchAll(HOLD_TOKEN)].forEach(([, , token = ''], i) => {
      this.#real.set(token, real[i]?.[2] ?? token);
    });
  }

  /** Replaces the page's tokens in a command with the tokens of this run. */
  inCommand(text: string): string {
    return [...this.#real].reduce((rest, [shown, real]) => rest.replaceAll(shown, real), text);
  }
}

/** Returns the text of a page with other answers. */
export function withAnswers(text: string, answers: ReadonlyMap<PageCommand, readonly string[]>): string {
  const lines = text.split('\n');
  const last = [...answers].sort(([one], [other]) => other.answerLine - one.answerLine);
  for (const [{ answer, answerLine }, now] of last) lines.splice(answerLine, answer.length, ...now);
  return lines.join('\n');
}
