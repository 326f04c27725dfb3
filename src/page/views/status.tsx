import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { changeToken, token } from '../ask/client.js';
import { restart } from '../ask/feed.js';
import { Button } from '../parts/controls.js';
import { Sentence, State } from '../parts/texts.js';
import { type Connection, caller, connection, now, overview } from '../state.js';
import { briefText } from '../text/shown-text.js';
import { clockText } from '../text/times.js';
import { askToken } from './token-dialog.js';

const CONNECTIONS: Readonly<Record<Connection['kind'], Parameters<typeof State>[0]>> = {
  live: { kind: 'good', text: 'live' },
  polling: { kind: 'watch', text: 'polling every 5 s' },
  paused: { kind: 'none', text: 'paused' },
  unusable: { kind: 'bad', text: 'unreadable answer' },
  connecting: { kind: 'none', text: 'connecting' },
  lost: { kind: 'bad', text: 'no answer' },
  refused: { kind: 'bad', text: 'refused' },
};

/** The head of the page: the state of the connection, and the user. */
export function Head() {
  return (
    <header class="head">
      <h1>
        <svg class="logo" viewBox="0 0 16 16" aria-hidden="true">
          <rect width="16" height="16" rx="3" />
          <path d="M2 6h12M2 9h7M2 12h4" />
        </svg>
        weir{' '}
        <span id="version" class="note">
          {overview.value?.version}
        </span>
      </h1>
      <p>
        <span class="spoken">Connection: </span>
        <span id="connection">
          <State {...CONNECTIONS[connection.value.kind]} />
        </span>
      </p>
      <Button id="reload" onClick={restart}>
        Reload
      </Button>
      <div class="user">
        <p id="who" class="note">
          {caller.value !== undefined && whoText(caller.value)}
        </p>
        {/* The user can remove the token even if the server does not answer. */}
        {token.value !== undefined && (
          <>
            <Button onClick={() => askToken('The new token replaces the current one.')}>Change token</Button>
            <Button onClick={forgetToken}>Forget token</Button>
          </>
        )}
      </div>
    </header>
  );
}

function whoText({ by, right }: NonNullable<typeof caller.value>): string {
  const name = by === 'loopback' ? 'Local access' : `Token ${briefText(by)}`;
  return `${name}: ${right === 'write' ? 'read and write' : 'read only'}`;
}

function forgetToken(): void {
  changeToken(undefined, false);
  // The page must not keep data that was read with the token.
  location.reload();
}

/** The current problem, if any, and what to do about it. */
export function Banner() {
  return (
    <div id="banner" class="banner" role="alert">
      <Problem />
    </div>
  );
}

/** The version in the first answer, which is also the version of the page. */
let pageVersion: string | undefined;

/** A problem with the connection hides all others, and a different version hides problems of the store. */
function Problem() {
  const { value: state } = connection;
  const version = overview.value?.version;
  pageVersion ??= version;
  if (state.kind === 'lost') return <Lost {...state} />;
  if (state.kind === 'refused' && state.status === 401)
    return (
      <>
        <Said strong="weir requires a token.">
          <Sentence text={state.error} />
        </Said>
        <Button class="primary" onClick={() => askToken(state.error)}>
          Enter a token
        </Button>
      </>
    );
  if (state.kind === 'refused')
    return (
      <>
        <Said strong="weir refused the request:">
          <Sentence text={state.error} />
        </Said>
        <Button onClick={restart}>Retry now</Button>
      </>
    );
  if (version === pageVersion && state.kind !== 'unusable') return <ServingProblem />;
  const why =
    version === undefined || version === pageVersion
      ? "This page cannot read weir's answers. Another version of weir may be running. Reload the page."
      : `weir now runs version ${briefText(version)}. Reload this page.`;
  return (
    <>
      <Said strong={why}>Until then, the data on this page may be wrong.</Said>
      <Button class="primary" onClick={() => location.reload()}>
        Reload the page
      </Button>
    </>
  );
}

/** Times are in milliseconds. Screen readers do not read the countdown. */
function Lost({ since, retryAt }: { readonly since: number; readonly retryAt: number }) {
  // The clock of the page redraws the countdown.
  const seconds = now.value && Math.ceil((retryAt - Date.now()) / 1000);
  return (
    <>
      <Said strong={`weir has not answered since ${clockText(since / 1000)}.`}>
        {overview.value !== undefined && 'This page shows the last known data. '}
        <span aria-hidden="true">{seconds > 0 ? `Next attempt in ${seconds} s.` : 'Retrying…'}</span>
      </Said>
      <Button onClick={restart}>Retry now</Button>
    </>
  );
}

/** A problem because of which denials may not be caused by callers. */
function ServingProblem() {
  const [since, setSince] = useState<number>();
  const { health, store } = overview.value ?? {};
  const isServing = health === undefined || health.status === 'SERVING';
  const isWhole = store === undefined || (store.up && store.nodes.every(({ up, of }) => up === of));
  const hasProblem = !isServing || !isWhole;
  useEffect(() => setSince(hasProblem ? now.value : undefined), [hasProblem]);
  if (!hasProblem || since === undefined) return null;
  const what = !isServing
    ? 'weir is not serving'
    : `${store?.up === true ? 'Part of the store' : 'The store'} is unavailable`;
  return (
    <Said strong={`${what}. This page first noticed the problem at ${clockText(since)}.`}>
      {!isServing && <Sentence text={health.reason ?? 'weir did not report a reason'} />}
      {!isWhole &&
        "While the store is unavailable, each rule's on_store_failure setting determines the answer. The " +
          'cause of a denial may be the store, not the caller.'}
    </Said>
  );
}

function Said({ strong, children }: { readonly strong: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <strong>{strong}</strong> {children}
    </div>
  );
}
