import type { ComponentChildren, JSX } from 'preact'
import { createContext } from 'preact'
import { useContext, useLayoutEffect, useMemo, useState } from 'preact/hooks'
import { parseRoute, type Route, toAddress, toTitle } from '../domain/route.ts'

export interface Router {
  readonly route: Route
  readonly open: (route: Route) => void
  /** Changes the address without a new entry in the history: for filters. */
  readonly replace: (route: Route) => void
}

const RouterContext = createContext<Router>({
  route: { page: 'overview' },
  open: () => undefined,
  replace: () => undefined,
})

export const useRouter = (): Router => useContext(RouterContext)

const readRoute = (): Route => parseRoute(location.pathname, location.search)

/** A page is another one if its address has another path: a filter is in the query. */
const toPagePath = (route: Route): string => toAddress(route).split('?')[0] ?? ''

export const RouterProvider = ({ children }: { children: ComponentChildren }) => {
  const [route, setRoute] = useState(readRoute)
  useLayoutEffect(() => {
    const update = () => setRoute(readRoute())
    addEventListener('popstate', update)
    return () => removeEventListener('popstate', update)
  }, [])
  const router = useMemo(
    () => ({
      route,
      open: (next: Route) => {
        history.pushState(null, '', toAddress(next))
        setRoute(next)
      },
      replace: (next: Route) => {
        history.replaceState(null, '', toAddress(next))
        setRoute(next)
      },
    }),
    [route],
  )
  return <RouterContext.Provider value={router}>{children}</RouterContext.Provider>
}

/** For the component that renders the page. Before the page is shown: no key that is pressed on it is lost. */
export const useNewPage = (route: Route): void => {
  const path = toPagePath(route)
  useLayoutEffect(() => {
    document.title = toTitle(route)
  }, [route])
  // The path identifies the page.
  useLayoutEffect(() => {
    // A screen reader announces the new page, and Tab continues from its beginning.
    document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [path])
}

type LinkProps = Omit<JSX.IntrinsicElements['a'], 'href'> & { readonly to: Route }

/** A link to a page of the console. */
export const Link = ({ to, children, ...rest }: LinkProps) => {
  const { open } = useRouter()
  return (
    <a
      {...rest}
      href={toAddress(to)}
      onClick={event => {
        // The browser opens a new tab or window itself.
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        open(to)
      }}
    >
      {children}
    </a>
  )
}
