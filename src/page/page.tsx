import { effect } from '@preact/signals';
import { type ComponentType, render } from 'preact';
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks';
import { UNUSABLE } from './ask/client.js';
import { checkVisibility, restart } from './ask/feed.js';
import { announcement, connection, overview, tick, VIEWS, type ViewName, view } from './state.js';
import { Bucket } from './views/bucket.js';
import { Overview } from './views/overview.js';
import { Plans } from './views/plans.js';
import { Replicas } from './views/replicas.js';
import { Rules } from './views/rules.js';
import { Banner, Head } from './views/status.js';
import { TokenDialog } from './views/token-dialog.js';
import { Top } from './views/top.js';
import 'uplot/dist/uPlot.min.css';
import './page.css';

/* The page at `/` of the debug port: the state of one server, and its views. */

const SHOWN: Readonly<Record<ViewName, ComponentType>> = {
  overview: Overview,
  rules: Rules,
  top: Top,
  bucket: Bucket,
  plans: Plans,
  replicas: Replicas,
};

/** Whether the last navigation was a click on a link of this page, and not a change of the URL. */
let isByLink = false;
/** Whether the user has navigated, so that the focus moves to the heading of the view. */
let hasNavigated = false;

function Page() {
  const { value: name } = view;
  return (
    <>
      <a class="spoken" href="#content">
        Skip to content
      </a>
      <Head />
      <nav aria-label="Views">
        <ul>
          {Object.entries(VIEWS).map(([link, title]) => (
            <li key={link}>
              <a href={`#${link}`} aria-current={link === name ? 'page' : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <Banner />
      <p id="announcements" class="spoken" role="status">
        {announcement}
      </p>
      <main id="content" tabIndex={-1}>
        <View key={name} name={name} />
      </main>
      <TokenDialog />
    </>
  );
}

function View({ name }: { readonly name: ViewName }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${VIEWS[name]} – weir`;
    if (!hasNavigated) return;
    scrollTo(0, 0);
    // The focus is visible only after a link of the page was used.
    heading.current?.classList.toggle('by-address', !isByLink);
    heading.current?.focus({ preventScroll: true });
    isByLink = false;
  }, [name]);
  const Shown = SHOWN[name];
  const [error] = useErrorBoundary();
  // The other two views ask for their data, and show why they have none.
  const hasData = overview.value !== undefined || name === 'top' || name === 'bucket';
  return (
    <section id={`view-${name}`} aria-labelledby={`title-${name}`}>
      <h2 id={`title-${name}`} tabIndex={-1} ref={heading}>
        {VIEWS[name]}
      </h2>
      {!hasData && <p class="note">{noDataText()}</p>}
      {hasData && error === undefined && <Shown />}
      {error !== undefined && <p class="problem">{UNUSABLE}</p>}
    </section>
  );
}

/** Says why a view is empty. The banner says what to do about it. */
function noDataText(): string {
  return connection.value.kind === 'connecting' ? 'Loading…' : 'This page has no data yet.';
}

/** Shows the view that the URL selects. Other fragments, such as that of the skip link, change nothing. */
function showViewOfUrl(): void {
  const name = location.hash.slice(1) || 'overview';
  if (Object.hasOwn(VIEWS, name)) view.value = name as ViewName;
}

effect(() => {
  const { kind } = connection.value;
  const isOld = kind === 'lost' || kind === 'refused';
  if (kind !== 'paused') document.body.classList.toggle('old', isOld && overview.value !== undefined);
});
addEventListener('click', ({ target }) => {
  isByLink = target instanceof Element && target.closest('a[href^="#"]') !== null;
});
addEventListener('hashchange', () => {
  hasNavigated = true;
  showViewOfUrl();
});
document.addEventListener('visibilitychange', checkVisibility);
setInterval(tick, 1000);
showViewOfUrl();
const place = document.getElementById('page');
if (place !== null) render(<Page />, place);
restart();
