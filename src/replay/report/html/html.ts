/** Markup. Created by {@link html}, which escapes all text. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

/** Content of markup: text, which is escaped, or other markup. */
export type Content = string | number | Html | readonly Html[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Returns the template as markup. Texts between the parts are escaped for elements and quoted attributes. */
export function html(parts: TemplateStringsArray, ...contents: readonly Content[]): Html {
  return new Html(
    parts.map((part, at) => (at === 0 ? part : markupOf(contents[at - 1] ?? '') + part)).join(''),
  );
}

function markupOf(content: Content): string {
  if (content instanceof Html) return content.markup;
  if (typeof content === 'object') return content.map(({ markup }) => markup).join('');
  return String(content).replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

/** Returns markup that weir ships. Never pass text from a log, a policy or a caller. */
export function trusted(markup: string): Html {
  return new Html(markup);
}
