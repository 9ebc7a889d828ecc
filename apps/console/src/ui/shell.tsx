import { type ComponentChildren, Fragment } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { type ConnectionState, onConnectionState } from '../api/changes.ts'
import { useSession, useSettings } from '../api/session.tsx'
import { SHORTCUTS } from '../domain/commands.ts'
import { NO_FILTER, type Route } from '../domain/route.ts'
import { Dialog } from './dialog.tsx'
import { Status } from './facts.tsx'
import { Notice } from './feedback.tsx'
import { Link, useRouter } from './router.tsx'

interface NavigationItem {
  readonly label: string
  readonly to: Route
  readonly pages: readonly Route['page'][]
  readonly isSub?: boolean
}

const ITEMS: readonly NavigationItem[] = [
  { label: 'Overview', to: { page: 'overview' }, pages: ['overview'] },
  { label: 'Names', to: { page: 'names', filter: NO_FILTER }, pages: ['names', 'name'] },
  { label: 'Zones', to: { page: 'zones' }, pages: ['zones', 'zone'] },
  { label: 'Deployments', to: { page: 'deployments', status: '' }, pages: ['deployments', 'deployment'] },
  { label: 'New deployment', to: { page: 'new-deployment' }, pages: ['new-deployment'], isSub: true },
  { label: 'Bucket claims', to: { page: 'buckets' }, pages: ['buckets'], isSub: true },
  { label: 'Leases', to: { page: 'leases', prefix: '' }, pages: ['leases', 'lease'] },
]

const connectionTexts = {
  connecting: ['busy', 'connecting'],
  connected: ['ok', 'live'],
  lost: ['bad', 'no connection'],
} as const

const ConnectionStatus = ({ state }: { readonly state: ConnectionState }) => {
  const [tone, text] = connectionTexts[state]
  return (
    <span role="status" title="Whether this page receives changes of the service">
      <Status tone={tone} text={text} />
    </span>
  )
}

interface ShellProps {
  readonly onOpenPalette: () => void
  readonly onOpenHelp: () => void
  readonly children: ComponentChildren
}

/** The navigation around every page. */
export const Shell = ({ onOpenPalette, onOpenHelp, children }: ShellProps) => {
  const { route } = useRouter()
  const { signOut } = useSession()
  const { version } = useSettings()
  const [isOpen, setIsOpen] = useState(false)
  const [connection, setConnection] = useState<ConnectionState>('connecting')
  useEffect(() => onConnectionState(setConnection), [])
  // A new page closes the menu of a narrow screen, before the page is shown.
  useLayoutEffect(() => setIsOpen(false), [route])
  return (
    <div class="shell">
      <a class="skip-link" href="#content">
        Skip to the content
      </a>
      <header class={`sidebar ${isOpen ? 'open' : ''}`}>
        <div class="brand">
          <span>Operator console</span>
          <button type="button" class="menu-button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            Menu
          </button>
        </div>
        <button type="button" onClick={onOpenPalette}>
          Search <kbd>Ctrl K</kbd>
        </button>
        <nav aria-label="Pages">
          <ul>
            {ITEMS.map(({ label, to, pages, isSub }) => (
              <li key={label} class={isSub ? 'sub' : ''}>
                <Link to={to} {...(pages.includes(route.page) ? { 'aria-current': 'page' as const } : {})}>
                  {label}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div class="foot">
          <ConnectionStatus state={connection} />
          <span class="muted">Version {version}</span>
          <a href="/docs">API reference</a>
          <div class="actions">
            <button type="button" class="plain" onClick={onOpenHelp}>
              Shortcuts
            </button>
            <button type="button" class="plain" onClick={() => void signOut()}>
              Sign out
            </button>
          </div>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {connection === 'lost' && (
          <div class="banner">
            <Notice tone="warn" title="The service does not respond. What you see may be old.">
              <div>This page reconnects automatically. If it does not, check that the service runs.</div>
            </Notice>
          </div>
        )}
        {children}
      </main>
    </div>
  )
}

export const HelpDialog = ({ onClose }: { readonly onClose: () => void }) => (
  <Dialog title="Keyboard shortcuts" onClose={onClose}>
    <dl class="facts">
      {SHORTCUTS.map(([keys, meaning]) => (
        <Fragment key={keys}>
          <dt>
            {keys.split(' ').map(key => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{meaning}</dd>
        </Fragment>
      ))}
    </dl>
    <div class="actions">
      <button type="button" onClick={onClose}>
        Close
      </button>
    </div>
  </Dialog>
)

interface PageProps {
  readonly title: ComponentChildren
  readonly lead?: ComponentChildren
  readonly crumbs?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** A page with its heading and its actions. */
export const Page = ({ title, lead, crumbs, actions, children }: PageProps) => (
  <div class="page">
    <div class="page-head">
      {crumbs && (
        <nav class="crumbs" aria-label="Parent page">
          {crumbs}
        </nav>
      )}
      <h1 tabIndex={-1}>{title}</h1>
      {actions && <div class="actions">{actions}</div>}
      {lead && <p class="lead">{lead}</p>}
    </div>
    {children}
  </div>
)

interface PanelProps {
  readonly title: ComponentChildren
  readonly aside?: ComponentChildren
  /** False: the content reaches to the border, as a table does. */
  readonly hasPadding?: boolean
  readonly children: ComponentChildren
}

export const Panel = ({ title, aside, hasPadding = true, children }: PanelProps) => (
  <section class="panel">
    <header>
      <h2>{title}</h2>
      {aside}
    </header>
    {hasPadding ? <div class="body">{children}</div> : children}
  </section>
)
