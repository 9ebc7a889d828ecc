import { type ListedName, nameStates } from '@pool/contract'

/** Where the console is served. */
export const BASE_PATH = '/console'

export type DnsStatus = NonNullable<ListedName['dns']>['status']
export type NameState = (typeof nameStates)[number]

/** The filters of the page of names. Empty text: no filter. */
export interface NameFilter {
  readonly text: string
  readonly pool: string
  readonly state: NameState | ''
  readonly dns: DnsStatus | ''
}

export const NO_FILTER: NameFilter = { text: '', pool: '', state: '', dns: '' }

/** A page of the console. Its path can be bookmarked and holds no secret. */
export type Route =
  | { readonly page: 'overview' }
  | { readonly page: 'names'; readonly filter: NameFilter }
  | { readonly page: 'name'; readonly pool: string; readonly subdomain: string }
  | { readonly page: 'zones' }
  | { readonly page: 'zone'; readonly pool: string }
  | { readonly page: 'deployments'; readonly status: string; readonly text?: string }
  | { readonly page: 'new-deployment' }
  | { readonly page: 'deployment'; readonly id: string }
  | { readonly page: 'buckets' }
  | { readonly page: 'leases'; readonly prefix: string }
  | { readonly page: 'lease'; readonly slot: string }
  | { readonly page: 'not-found' }

const DNS_STATUSES: readonly string[] = ['pending', 'published', 'failing']

const oneOf = <Value extends string>(values: readonly string[], text: string | null): Value | '' =>
  text !== null && values.includes(text) ? (text as Value) : ''

/** Null if the text is not percent-encoded UTF-8. */
const decode = (text: string): string | null => {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

const parseSegments = (segments: readonly string[], query: URLSearchParams): Route => {
  const [first = '', second, third] = segments
  const count = segments.length
  if (count === 0) return { page: 'overview' }
  if (first === 'names' && count === 1) {
    const [text, pool] = [query.get('q') ?? '', query.get('pool') ?? '']
    return {
      page: 'names',
      filter: { text, pool, state: oneOf(nameStates, query.get('state')), dns: oneOf(DNS_STATUSES, query.get('dns')) },
    }
  }
  if (first === 'names' && count === 3 && second && third) return { page: 'name', pool: second, subdomain: third }
  if (first === 'zones' && count === 1) return { page: 'zones' }
  if (first === 'zones' && count === 2 && second) return { page: 'zone', pool: second }
  if (first === 'deployments' && count === 1) {
    const text = query.get('q')
    return { page: 'deployments', status: query.get('status') ?? '', ...(text ? { text } : {}) }
  }
  if (first === 'deployments' && count === 2 && second === 'new') return { page: 'new-deployment' }
  if (first === 'deployments' && count === 2 && second) return { page: 'deployment', id: second }
  if (first === 'buckets' && count === 1) return { page: 'buckets' }
  if (first === 'leases' && count === 1) return { page: 'leases', prefix: query.get('prefix') ?? '' }
  if (first === 'leases' && count === 2 && second) return { page: 'lease', slot: second }
  return { page: 'not-found' }
}

/** Parses the path and the query of an address. */
export const parseRoute = (path: string, search: string): Route => {
  if (path !== BASE_PATH && !path.startsWith(`${BASE_PATH}/`)) return { page: 'not-found' }
  const segments = path
    .slice(BASE_PATH.length)
    .split('/')
    .filter(segment => segment !== '')
    .map(decode)
  if (!segments.every(segment => segment !== null)) return { page: 'not-found' }
  return parseSegments(segments, new URLSearchParams(search))
}

const withQuery = (path: string, fields: Readonly<Record<string, string>>): string => {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ''))
  return query.size === 0 ? path : `${path}?${query}`
}

/** The address of a page: the reverse of `parseRoute`. */
export const toAddress = (route: Route): string => {
  const path = (...segments: readonly string[]) => [BASE_PATH, ...segments.map(encodeURIComponent)].join('/')
  switch (route.page) {
    case 'overview':
      return BASE_PATH
    case 'names': {
      const { text, pool, state, dns } = route.filter
      return withQuery(path('names'), { q: text, pool, state, dns })
    }
    case 'name':
      return path('names', route.pool, route.subdomain)
    case 'zones':
      return path('zones')
    case 'zone':
      return path('zones', route.pool)
    case 'deployments':
      return withQuery(path('deployments'), { q: route.text ?? '', status: route.status })
    case 'new-deployment':
      return path('deployments', 'new')
    case 'deployment':
      return path('deployments', route.id)
    case 'buckets':
      return path('buckets')
    case 'leases':
      return withQuery(path('leases'), { prefix: route.prefix })
    case 'lease':
      return path('leases', route.slot)
    case 'not-found':
      return path('not-found')
  }
}

/** The title of the window of a page. */
export const formatTitle = (page: string): string => `${page} · Operator console`

/** The title of the window, as far as the address determines it. */
export const toTitle = (route: Route): string => {
  const titles: Readonly<Record<Route['page'], string>> = {
    overview: 'Overview',
    names: 'Names',
    name: route.page === 'name' ? `${route.subdomain}.${route.pool}` : '',
    zones: 'Zones',
    zone: route.page === 'zone' ? route.pool : '',
    deployments: 'Deployments',
    'new-deployment': 'New deployment',
    deployment: 'Deployment',
    buckets: 'Bucket claims',
    leases: 'Leases',
    lease: route.page === 'lease' ? route.slot : '',
    'not-found': 'Page not found',
  }
  return formatTitle(titles[route.page])
}

/** The parts of a search for names, as the service takes them. */
export interface NameSearch {
  readonly q?: string
  readonly address?: string
  readonly createdBy?: string
  readonly pool?: string
  readonly state?: Exclude<NameFilter['state'], ''>
  readonly dns?: Exclude<NameFilter['dns'], ''>
}

/** A creator can have spaces, so that it is the rest of the text. */
const CREATOR = /(?:^|\s)by:(.*)$/
/** A label begins with a letter, so that a word that begins with a digit is an address. */
const ADDRESS_WORD = /^(?:ip:)?([0-9][0-9.]*)$/

/** Reads the text of the search box: `acme`, `acme.pool.te`, `203.0.113`, `ip:203`, `by:ops@acme.example`. */
export const parseNameSearch = ({ text, pool, state, dns }: NameFilter): NameSearch => {
  const createdBy = CREATOR.exec(text)?.[1]?.trim() ?? ''
  const words = text.replace(CREATOR, '').split(/\s+/).filter(Boolean)
  const address = words.map(word => ADDRESS_WORD.exec(word)?.[1]).find(found => found !== undefined) ?? ''
  const q = words.filter(word => !ADDRESS_WORD.test(word)).join(' ')
  return {
    ...(q === '' ? {} : { q }),
    ...(address === '' ? {} : { address }),
    ...(createdBy === '' ? {} : { createdBy }),
    ...(pool === '' ? {} : { pool }),
    ...(state === '' ? {} : { state }),
    ...(dns === '' ? {} : { dns }),
  }
}
