import { createHash } from 'node:crypto';
import type { HttpAnswer } from '../../http/http.js';
import { readAsset } from '../../runtime/assets.js';

const FOLDER = 'src/page';
/** Placeholders in page.html for the build. */
const STYLE = '<style></style>';
const SCRIPT = '<script type="module"></script>';

let answer: HttpAnswer | undefined;

/** Returns the page for browsers: a single document that only needs this port. Throws if the build is incomplete. */
export function pageAnswer(): HttpAnswer {
  answer ??= assemble();
  return answer;
}

function assemble(): HttpAnswer {
  const style = readAsset(`${FOLDER}/page.css`);
  const script = readAsset(`${FOLDER}/page.js`);
  const [beforeStyle, afterStyle] = halves(readAsset(`${FOLDER}/page.html`), STYLE);
  const [beforeScript, afterScript] = halves(afterStyle, SCRIPT);
  return {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: `${beforeStyle}<style>${style}</style>${beforeScript}<script type="module">${script}</script>${afterScript}`,
    headers: {
      'content-security-policy': contentSecurityPolicy(style, script),
      'cache-control': 'no-cache',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      vary: 'accept',
    },
  };
}

function halves(text: string, between: string): readonly [string, string] {
  const at = text.indexOf(between);
  if (at === -1) throw new Error(`page.html does not contain ${between}; rebuild weir`);
  return [text.slice(0, at), text.slice(at + between.length)];
}

/**
 * Returns a policy that allows only this script and only connections to this port (Content Security Policy Level 3).
 */
function contentSecurityPolicy(style: string, script: string): string {
  return [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // Texts cannot become markup or code (Trusted Types).
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
