import type { ServiceDocument } from '../oracle/document.ts'
import type { Answer } from '../wire/answer.ts'
import { authorization } from './headers.ts'
import { type Base, bent, grammarOf } from './mutate.ts'
import type { Random } from './random.ts'
import { described, type Lane, operationNamed } from './step.ts'

export interface ApiLaneOptions {
  readonly document: ServiceDocument
  readonly random: Random
  /** Its own names have it in them. */
  readonly number: number
  /** The operator's token, on the operator's address; null: the other address. */
  readonly token: string | null
  /** Part of every secret that is sent. */
  readonly mark: string
}

const POOL = 'pool.test'
const NAMES = 8
const sshPublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f fuzz'

/** How often each operation is asked for. What answers much, or makes work that lasts, is asked for less. */
const weights: Readonly<Record<string, number>> = {
  listReservedLabels: 2,
  checkName: 14,
  reserveName: 20,
  commitName: 10,
  renewReservation: 8,
  releaseName: 12,
  getAllocation: 10,
  listAllocations: 2,
  readHistory: 4,
  convergeZone: 1,
  createDeployment: 4,
  listDeployments: 2,
  getDeployment: 3,
  removeDeployment: 2,
  followDeployment: 1,
  validateObjectStorageKeys: 3,
  validateToken: 3,
  health: 1,
  livez: 1,
  readyz: 1,
  metrics: 0.3,
  openapi: 0.3,
  reference: 0.5,
  referenceAsset: 0.3,
}

const wheelOf = (document: ServiceDocument): readonly string[] =>
  document.operations.flatMap(({ id }) => Array<string>(Math.round((weights[id] ?? 1) * 10)).fill(id))

const jsonOf = (answer: Answer): Readonly<Record<string, unknown>> => {
  try {
    return Object(JSON.parse(answer.body.toString('utf8')))
  } catch {
    return {}
  }
}

/** A client of the allocation API: reserves, commits, renews and releases names of its own, and some that all want. */
export const createApiLane = ({ document, random, number, token, mark }: ApiLaneOptions): Lane => {
  const wheel = wheelOf(document)
  const tokens = new Map<string, string>()
  let deployments: string[] = []
  let cursor = 'YQ'
  const nameOf = () => (random.chance(0.15) ? `shared-${random.below(6)}` : `t${number}-${random.below(NAMES)}`)
  const nobodys = '00000000-0000-4000-8000-000000000000'

  const knownOf = (): Readonly<Record<string, unknown>> => {
    const name = nameOf()
    return {
      domain: random.chance(0.05) ? 'POOL.test ' : POOL,
      subdomain: name,
      sub: name,
      reservationToken: random.chance(0.1) ? nobodys : (tokens.get(name) ?? nobodys),
      loadBalancerIP: `203.0.113.${1 + random.below(250)}`,
      sovereignFQDN: `${name}.${POOL}`,
      createdBy: random.pick(['', 'fuzz', 'é 💥', null]),
      'Idempotency-Key': `key-${number}-${random.below(12)}`,
      id: deployments.length > 0 && random.chance(0.8) ? random.pick(deployments) : nobodys,
      asset: random.pick(['start.js', 'swagger-ui.css', 'swagger-ui-bundle.js', 'package.json']),
      limit: `${1 + random.below(20)}`,
      cursor,
      state: random.pick(['reserved', 'active']),
      status: random.pick(['ready', 'failed']),
      dryRun: random.pick(['true', 'false']),
      'Last-Event-ID': `${random.below(9)}`,
      provider: 'hetzner',
      region: 'fsn1',
      accessKey: `AK${mark}0123456789abcdef`,
      secretKey: `SK${mark}0123456789abcdef0123456789abcdef`,
      token: `PT${mark}0123456789abcdef`,
      orgName: 'Fuzz',
      orgEmail: 'ops@fuzz.example',
      providers: random.chance(0.7) ? ['local'] : ['hetzner'],
      sshPublicKey,
      objectStorageRegion: 'nbg1',
      objectStorageAccessKey: `AK${mark}0123456789abcdef`,
      objectStorageSecretKey: `SK${mark}0123456789abcdef0123456789abcdef`,
    }
  }

  /** What is wholly good: only these go deep. */
  const goodBody = (id: string, known: Readonly<Record<string, unknown>>): unknown => {
    const fields = (...names: readonly string[]) => Object.fromEntries(names.map(name => [name, known[name]]))
    switch (id) {
      case 'reserveName':
        return random.chance(0.5) ? fields('subdomain') : fields('subdomain', 'createdBy')
      case 'commitName':
        return fields('subdomain', 'reservationToken', 'loadBalancerIP', 'sovereignFQDN')
      case 'renewReservation':
        return fields('subdomain', 'reservationToken')
      case 'releaseName':
        return random.chance(0.7) ? fields('subdomain') : fields('subdomain', 'reservationToken')
      case 'createDeployment': {
        const label = `d${number}-${random.below(3)}`
        const common = fields(
          'orgName',
          'orgEmail',
          'providers',
          'region',
          'sshPublicKey',
          'objectStorageRegion',
          'objectStorageAccessKey',
          'objectStorageSecretKey',
        )
        return random.chance(0.7)
          ? { ...common, sovereignDomainMode: 'pool', sovereignPoolDomain: POOL, sovereignSubdomain: label }
          : { ...common, sovereignDomainMode: 'byo', sovereignFQDN: `${label}.fuzz.example` }
      }
      case 'validateObjectStorageKeys':
        return fields('region', 'accessKey', 'secretKey', 'provider')
      default:
        return fields('provider', 'token')
    }
  }

  const baseOf = (id: string): Base => {
    const operation = operationNamed(document, id)
    const known = knownOf()
    const base = described(document, operation, known, random)
    const path = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(known[name])))
    const whole = random.chance(0.75)
      ? { ...base, path, ...(base.body === undefined ? {} : { body: goodBody(id, known) }) }
      : base
    // Without a limit the whole of a history is answered, which grows with every request.
    if (id !== 'readHistory' && id !== 'listAllocations') return whole
    return {
      ...whole,
      query: [
        ['limit', String(known.limit)],
        ...(whole.query ?? []).filter(([name]) => name !== 'limit' || random.chance(0.1)),
      ],
    }
  }

  const learn = (answer: Answer) => {
    const { subdomain, reservationToken, id, status, nextCursor, freed } = jsonOf(answer)
    if (typeof subdomain === 'string' && typeof reservationToken === 'string') tokens.set(subdomain, reservationToken)
    if (answer.status === 201 && typeof id === 'string' && status === 'provisioning')
      deployments = [id, ...deployments].slice(0, 3)
    if (typeof nextCursor === 'string') cursor = nextCursor
    if (freed && typeof Object(freed).subdomain === 'string') tokens.delete(Object(freed).subdomain)
  }

  return {
    next() {
      const base = baseOf(random.pick(wheel))
      const grammar = grammarOf(random)
      const isOdd = grammar === 'headers' && token !== null && random.chance(0.3)
      const auth = token === null ? [] : [`Authorization: ${isOdd ? authorization(token, random) : `Bearer ${token}`}`]
      const request = bent({ ...base, headers: [...auth, ...(base.headers ?? [])] }, grammar, random)
      return { request, learn }
    },
  }
}
