import { useCallback, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { searchNames } from './api/client.ts'
import { useSession } from './api/session.tsx'
import { type Command, readShortcut, type Shortcut } from './domain/commands.ts'
import { NO_FILTER, parseNameSearch, type Route } from './domain/route.ts'
import { BucketsPage } from './pages/buckets.tsx'
import { DeploymentPage } from './pages/deployment.tsx'
import { DeploymentsPage } from './pages/deployments.tsx'
import { LeasePage, LeasesPage } from './pages/leases.tsx'
import { NamePage } from './pages/name.tsx'
import { NamesPage } from './pages/names.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { SignInPage } from './pages/sign-in.tsx'
import { WizardPage } from './pages/wizard.tsx'
import { ZonePage } from './pages/zone.tsx'
import { ZonesPage } from './pages/zones.tsx'
import { EmptyState, ErrorNotice } from './ui/feedback.tsx'
import { Palette } from './ui/palette.tsx'
import { Link, RouterProvider, useNewPage, useRouter } from './ui/router.tsx'
import { HelpDialog, Page, Shell } from './ui/shell.tsx'

const NotFoundPage = () => (
  <Page title="Page not found">
    <EmptyState title="The console has no page with this address.">
      <div class="actions">
        <Link class="button" to={{ page: 'overview' }}>
          Open the overview
        </Link>
      </div>
    </EmptyState>
  </Page>
)

/** The page of the current address. */
const Pages = () => {
  const { route } = useRouter()
  useNewPage(route)
  switch (route.page) {
    case 'overview':
      return <OverviewPage />
    case 'names':
      return <NamesPage filter={route.filter} />
    case 'name':
      return <NamePage key={`${route.subdomain}.${route.pool}`} pool={route.pool} subdomain={route.subdomain} />
    case 'zones':
      return <ZonesPage />
    case 'zone':
      return <ZonePage key={route.pool} pool={route.pool} />
    case 'deployments':
      return <DeploymentsPage {...route} />
    case 'new-deployment':
      return <WizardPage />
    case 'deployment':
      return <DeploymentPage key={route.id} id={route.id} />
    case 'buckets':
      return <BucketsPage />
    case 'leases':
      return <LeasesPage prefix={route.prefix} />
    case 'lease':
      return <LeasePage key={route.slot} slot={route.slot} />
    case 'not-found':
      return <NotFoundPage />
  }
}

const PAGE_COMMANDS: readonly (readonly [id: string, label: string, hint: string, to: Route])[] = [
  ['overview', 'Overview', 'g o', { page: 'overview' }],
  ['names', 'Names', 'g n', { page: 'names', filter: NO_FILTER }],
  ['failing', 'Names that fail to publish', 'page', { page: 'names', filter: { ...NO_FILTER, dns: 'failing' } }],
  ['zones', 'Zones', 'g z', { page: 'zones' }],
  ['deployments', 'Deployments', 'g d', { page: 'deployments', status: '' }],
  ['failed', 'Deployments that failed', 'page', { page: 'deployments', status: 'failed' }],
  ['new', 'New deployment', 'c', { page: 'new-deployment' }],
  ['buckets', 'Bucket claims', 'page', { page: 'buckets' }],
  ['leases', 'Leases', 'g l', { page: 'leases', prefix: '' }],
]
const PAGE_SHORTCUTS: Readonly<Partial<Record<Shortcut, string>>> = {
  overview: 'overview',
  names: 'names',
  zones: 'zones',
  deployments: 'deployments',
  leases: 'leases',
  new: 'new',
}
const FOUND_NAMES = 8

/** The buttons next to the heading of the page; none behind a dialog. */
const findPageActions = (): readonly Command[] => {
  const selector = 'body:not(:has(dialog[open])) .page-head .actions button:enabled'
  return Array.from(document.querySelectorAll<HTMLButtonElement>(selector), (button, index) => ({
    id: `action-${index}`,
    label: button.textContent,
    hint: 'this page',
    run: () => button.click(),
  }))
}

const isTypingTarget = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

type Overlay = 'palette' | 'help' | null

/** The signed-in console: pages, palette and shortcuts. */
const Console = () => {
  const { open } = useRouter()
  const { signOut } = useSession()
  const [overlay, setOverlay] = useState<Overlay>(null)
  const [pageActions, setPageActions] = useState<readonly Command[]>([])
  const isSecondKey = useRef(false)

  const openPalette = useCallback(() => {
    setPageActions(findPageActions())
    setOverlay('palette')
  }, [])
  const commands = useMemo<readonly Command[]>(
    () => [
      ...PAGE_COMMANDS.map(([id, label, hint, to]) => ({ id, label, hint, run: () => open(to) })),
      { id: 'help', label: 'Keyboard shortcuts', hint: '?', run: () => setOverlay('help') },
      { id: 'sign-out', label: 'Sign out', hint: 'action', run: () => void signOut() },
    ],
    [open, signOut],
  )
  const search = useCallback(
    async (text: string, signal: AbortSignal): Promise<readonly Command[]> => {
      const query = parseNameSearch({ ...NO_FILTER, text })
      const { names } = await searchNames(query, { cursor: undefined, limit: FOUND_NAMES, signal })
      return names.map(({ poolDomain, subdomain, state }) => ({
        id: `name-${subdomain}.${poolDomain}`,
        label: `${subdomain}.${poolDomain}`,
        hint: state,
        run: () => open({ page: 'name', pool: poolDomain, subdomain }),
      }))
    },
    [open],
  )
  // Before the page is shown: a key that is pressed immediately counts too.
  useLayoutEffect(() => {
    const handle = (event: KeyboardEvent) => {
      const press = {
        key: event.key,
        hasModifier: event.altKey,
        hasControl: event.ctrlKey || event.metaKey,
        isTyping: isTypingTarget(event.target) || document.querySelector('dialog[open]') !== null,
      }
      const { shortcut, isNextSecond } = readShortcut(isSecondKey.current, press)
      isSecondKey.current = isNextSecond
      if (shortcut === null) return
      event.preventDefault()
      if (shortcut === 'palette') openPalette()
      else if (shortcut === 'help') setOverlay(shortcut)
      else if (shortcut === 'search') document.querySelector<HTMLElement>('main input[type="search"]')?.focus()
      else commands.find(({ id }) => id === PAGE_SHORTCUTS[shortcut])?.run()
    }
    addEventListener('keydown', handle)
    return () => removeEventListener('keydown', handle)
  }, [commands, openPalette])
  const close = () => setOverlay(null)
  return (
    <Shell onOpenPalette={openPalette} onOpenHelp={() => setOverlay('help')}>
      <Pages />
      {overlay === 'palette' && <Palette commands={[...pageActions, ...commands]} search={search} onClose={close} />}
      {overlay === 'help' && <HelpDialog onClose={close} />}
    </Shell>
  )
}

export const App = () => {
  const { state, retry } = useSession()
  if (state.kind === 'unknown') return null
  if (state.kind === 'failed') {
    return (
      <main class="sign-in">
        <ErrorNotice error={state.error} onRetry={retry} />
      </main>
    )
  }
  if (state.kind === 'signed-out') return <SignInPage reason={state.reason} />
  return (
    <RouterProvider>
      <Console />
    </RouterProvider>
  )
}
