import type { HttpResponse } from '@pool/test-kit/http1.ts'
import type { ServiceDocument } from '../oracle/document.ts'
import { toTenantMark } from '../oracle/tenants.ts'
import type { Choices } from './choices.ts'
import { authorization, pageHeaders } from './headers.ts'
import { mutate, pickMutation, type SeedRequest } from './mutate.ts'
import { createDocumentedRequest, type FuzzWorkload, findOperation, type Step } from './workload.ts'

export interface ApiWorkloadOptions {
  readonly document: ServiceDocument
  /** Part of the names that only this client uses. */
  readonly number: number
  /** The operator's token, for the operator's listener; null: the other listener. */
  readonly token: string | null
  /** Part of every secret that is sent. */
  readonly mark: string
}

const POOL = 'pool.test'
const NAMES = 8
const sshPublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f fuzz'

/** Their responses last for minutes, so no other request of their client would follow. */
export const ENDLESS_OPERATIONS: readonly string[] = ['followChanges']

/** The relative frequency of each operation. Large responses and lasting work are rarer. */
const weights: Readonly<Record<string, number>> = {
  listReservedLabels: 2,
  checkName: 14,
  reserveName: 20,
  commitName: 10,
  updateName: 8,
  liftCoolOff: 6,
  renewReservation: 8,
  releaseName: 12,
  getAllocation: 10,
  listAllocations: 2,
  readHistory: 4,
  convergeZone: 1,
  republishZone: 0.5,
  adoptOrphans: 0.3,
  removeOrphans: 0.3,
  createDeployment: 4,
  listDeployments: 2,
  getDeployment: 3,
  applyDeployment: 2,
  planDeployment: 1,
  destroyDeployment: 6,
  unlockDeployment: 5,
  removeDeployment: 6,
  followDeployment: 2,
  ...Object.fromEntries(ENDLESS_OPERATIONS.map(id => [id, 0])),
  validateObjectStorageKeys: 3,
  validateToken: 3,
  getHealth: 1,
  getLiveness: 1,
  getReadiness: 1,
  getMetrics: 0.3,
  getOpenApiDocument: 0.3,
  getApiReference: 0.5,
  getApiReferenceAsset: 0.3,
}

/** The other listener rejects them. */
const OPERATOR_CALLS = [
  'liftCoolOff',
  'unlockDeployment',
  'listBucketClaims',
  'liftBucketClaim',
  'readDeploymentHistory',
]
const REJECTED_SHARE = 0.2
/** They need a deployment of the client. */
const DEPLOYMENT_CALLS = [
  ...[
    'getDeployment',
    'applyDeployment',
    'planDeployment',
    'destroyDeployment',
    'unlockDeployment',
    'removeDeployment',
  ],
  'followDeployment',
]

/** They end a deployment, so that the next client gets its FQDN, or show what its runs printed. */
const SUCCESSION_CALLS = ['destroyDeployment', 'removeDeployment', 'followDeployment']
/** Of the requests of a client that has deployments. */
const SUCCESSION_SHARE = 0.2

const toWeighted = ({ operations }: ServiceDocument, isOperator: boolean): readonly string[] =>
  operations.flatMap(({ id }) => {
    const share = isOperator || !OPERATOR_CALLS.includes(id) ? 1 : REJECTED_SHARE
    return Array<string>(Math.round((weights[id] ?? 1) * share * 10)).fill(id)
  })

const parseObject = ({ text }: HttpResponse): Readonly<Record<string, unknown>> => {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

/** The tokens, names, deployments and cursor of the last responses. */
interface ApiState {
  readonly tokens: Map<string, string>
  /** Names that the client committed. */
  readonly active: Set<string>
  /** Active names that it released, with their tokens. */
  readonly released: Map<string, string>
  /** Ids with their deployment tokens. */
  deployments: (readonly [id: string, token: string])[]
  cursor: string
}

/** A client of the allocation API. It reserves, commits, renews and releases its own names, and some shared ones. */
export const createApiWorkload = (
  options: ApiWorkloadOptions,
  state: ApiState = { tokens: new Map(), active: new Set(), released: new Map(), deployments: [], cursor: 'YQ' },
): FuzzWorkload => {
  const { document, number, token, mark } = options
  const weighted = toWeighted(document, token !== null)
  const tenantMark = toTenantMark(number)

  /** A name with which the operation can succeed, if the client knows one. */
  const pickName = (id: string, choices: Choices): string => {
    const reserved = [...state.tokens.keys()].filter(name => !state.active.has(name))
    const usable =
      {
        releaseName: choices.chance(0.5) ? [...state.active] : [],
        commitName: reserved,
        renewReservation: reserved,
        updateName: [...state.active],
        liftCoolOff: [...state.released.keys()],
      }[id] ?? []
    if (usable.length > 0 && choices.chance(0.8)) return choices.pick(usable)
    return choices.chance(0.15) ? `shared-${choices.below(6)}` : `t${number}-${choices.below(NAMES)}`
  }
  /** A label for a deployment. Four clients, one of them an operator, contend for the shared one. */
  const pickLabel = (choices: Choices): string =>
    choices.chance(0.8) ? `e${number >> 2}` : `d${number}-${choices.below(3)}`

  const createKnown = (id: string, choices: Choices): Readonly<Record<string, unknown>> => {
    const name = pickName(id, choices)
    const { tokens, deployments } = state
    const [deployment, deploymentToken] =
      deployments.length > 0 && choices.chance(0.9) ? choices.pick(deployments) : [UNKNOWN_ID, UNKNOWN_ID]
    return {
      domain: choices.chance(0.05) ? 'POOL.test ' : POOL,
      subdomain: name,
      sub: name,
      reservationToken: choices.chance(0.1) ? UNKNOWN_ID : (tokens.get(name) ?? UNKNOWN_ID),
      loadBalancerIP: `203.0.113.${1 + choices.below(250)}`,
      sovereignFQDN: `${name}.${POOL}`,
      createdBy: choices.pick(['', `fuzz ${tenantMark}`, `é 💥 ${tenantMark}`, null]),
      'Idempotency-Key': `key-${number}-${choices.below(choices.chance(0.3) ? 12 : 2_000)}`,
      id: deployment,
      'X-Deployment-Token': choices.chance(0.1) ? UNKNOWN_ID : deploymentToken,
      operation: choices.pick(['apply', 'destroy']),
      abandon: choices.pick(['true', 'false']),
      deployment,
      fqdn: `${name}.${POOL}`,
      bucket: `catalyst-d${number}-${choices.below(3)}-fuzz-example`,
      asset: choices.pick(['start.js', 'swagger-ui.css', 'swagger-ui-bundle.js', 'package.json']),
      limit: `${1 + choices.below(20)}`,
      cursor: state.cursor,
      state: choices.pick(['reserved', 'active']),
      status: choices.pick(['ready', 'failed']),
      dryRun: choices.pick(['true', 'false']),
      'Last-Event-ID': `${choices.below(9)}`,
      provider: 'hetzner',
      region: 'fsn1',
      accessKey: `AK${mark}0123456789abcdef`,
      secretKey: `SK${mark}0123456789abcdef0123456789abcdef`,
      token: `PT${mark}0123456789abcdef`,
      orgName: `${choices.chance(token === null ? 0.02 : 0.3) ? 'Stuck' : 'Fuzz'} ${tenantMark}`,
      orgEmail: `ops@${tenantMark}.example`,
      providers: choices.chance(0.7) ? ['local'] : ['hetzner'],
      sshPublicKey,
      objectStorageRegion: 'nbg1',
      objectStorageAccessKey: `AK${mark}0123456789abcdef`,
      objectStorageSecretKey: `SK${mark}0123456789abcdef0123456789abcdef`,
    }
  }

  /** A valid body: only valid requests reach the deeper layers. */
  const createValidBody = (id: string, known: Readonly<Record<string, unknown>>, choices: Choices): unknown => {
    const fields = (...names: readonly string[]) => Object.fromEntries(names.map(name => [name, known[name]]))
    switch (id) {
      case 'reserveName': {
        const formerToken = state.released.get(String(known.subdomain))
        if (formerToken !== undefined && choices.chance(0.5))
          return { ...fields('subdomain', 'createdBy'), reservationToken: formerToken }
        return choices.chance(0.5) ? fields('subdomain') : fields('subdomain', 'createdBy')
      }
      case 'updateName':
        return {
          ...fields('subdomain', 'loadBalancerIP'),
          ...(token !== null && choices.chance(0.5) ? {} : fields('reservationToken')),
          ...(choices.chance(0.3) ? fields('sovereignFQDN') : {}),
        }
      case 'commitName':
        return fields('subdomain', 'reservationToken', 'loadBalancerIP', 'sovereignFQDN')
      case 'renewReservation':
        return fields('subdomain', 'reservationToken')
      case 'releaseName':
        return choices.chance(0.7) ? fields('subdomain') : fields('subdomain', 'reservationToken')
      case 'createDeployment': {
        const label = pickLabel(choices)
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
        return choices.chance(0.7)
          ? { ...common, sovereignDomainMode: 'pool', sovereignPoolDomain: POOL, sovereignSubdomain: label }
          : { ...common, sovereignDomainMode: 'byo', sovereignFQDN: `${label}.fuzz.example` }
      }
      case 'applyDeployment':
        return fields('orgName', 'region', 'objectStorageAccessKey', 'objectStorageSecretKey')
      case 'destroyDeployment':
        return fields('objectStorageAccessKey', 'objectStorageSecretKey')
      case 'planDeployment':
        return fields('operation', 'orgName', 'objectStorageAccessKey', 'objectStorageSecretKey')
      case 'createDomainChallenge':
        return { domain: `${pickLabel(choices)}.fuzz.example` }
      case 'validateObjectStorageKeys':
        return fields('region', 'accessKey', 'secretKey', 'provider')
      default:
        return fields('provider', 'token')
    }
  }

  const pickOperation = (choices: Choices): string => {
    if (state.deployments.length > 0 && choices.chance(SUCCESSION_SHARE)) return choices.pick(SUCCESSION_CALLS)
    const id = choices.pick(weighted)
    const isInVain = DEPLOYMENT_CALLS.includes(id) && state.deployments.length === 0
    return isInVain && choices.chance(0.4) ? 'createDeployment' : id
  }

  const createSeed = (id: string, known: Readonly<Record<string, unknown>>, choices: Choices): SeedRequest => {
    const operation = findOperation(document, id)
    const documented = createDocumentedRequest(document, operation, known, choices)
    const path = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(known[name])))
    const hasToken = operation.parameters.some(({ name }) => name === 'X-Deployment-Token')
    const withoutToken = (documented.headers ?? []).filter(line => !line.startsWith('X-Deployment-Token:'))
    const seed = choices.chance(0.75)
      ? {
          ...documented,
          path,
          ...(hasToken && { headers: [...withoutToken, `X-Deployment-Token: ${known['X-Deployment-Token']}`] }),
          ...(documented.body === undefined ? {} : { body: createValidBody(id, known, choices) }),
        }
      : documented
    // Without a limit the whole list is returned, which grows with every request.
    if (id !== 'readHistory' && id !== 'listAllocations') return seed
    return {
      ...seed,
      query: [
        ['limit', String(known.limit)],
        ...(seed.query ?? []).filter(([name]) => name !== 'limit' || choices.chance(0.1)),
      ],
    }
  }

  const learn = (row: string, deployment: unknown, response: HttpResponse) => {
    if (response.status === 204 && row === 'removeDeployment')
      state.deployments = state.deployments.filter(([known]) => known !== deployment)
    const {
      state: allocationState,
      subdomain,
      reservationToken,
      id,
      status,
      deploymentToken,
      nextCursor,
      freed,
    } = parseObject(response)
    if (typeof subdomain === 'string' && typeof reservationToken === 'string') {
      state.tokens.set(subdomain, reservationToken)
      state.released.delete(subdomain)
    }
    if (typeof subdomain === 'string' && row === 'commitName' && allocationState === 'active')
      state.active.add(subdomain)
    if (response.status === 201 && typeof id === 'string' && status === 'provisioning')
      state.deployments = [[id, String(deploymentToken)] as const, ...state.deployments].slice(0, 3)
    if (typeof nextCursor === 'string') state.cursor = nextCursor
    const { subdomain: freedName, state: freedState } = Object(freed)
    // A name that was lifted is free, and the cool-off of the others is probably over.
    if (row === 'liftCoolOff' && response.status !== 401) state.released.clear()
    if (typeof freedName !== 'string') return
    const formerToken = state.tokens.get(freedName)
    if (freedState === 'active' && formerToken !== undefined) state.released.set(freedName, formerToken)
    state.tokens.delete(freedName)
    state.active.delete(freedName)
  }

  return {
    next(choices): Step {
      const id = pickOperation(choices)
      const known = createKnown(id, choices)
      const seed = createSeed(id, known, choices)
      const mutation = pickMutation(choices)
      const isUnusual = mutation === 'headers' && token !== null && choices.chance(0.3)
      const authorizationLine =
        token === null ? [] : [`Authorization: ${isUnusual ? authorization(token, choices) : `Bearer ${token}`}`]
      const page = choices.chance(0.03) ? pageHeaders(choices) : []
      const headers = [...authorizationLine, ...(seed.headers ?? []), ...page]
      const request = { ...mutate({ ...seed, headers }, mutation, choices), tenant: number }
      return { request, learn: response => learn(id, known.deployment, response) }
    },
    clone: () =>
      createApiWorkload(options, {
        ...state,
        tokens: new Map(state.tokens),
        active: new Set(state.active),
        released: new Map(state.released),
      }),
  }
}
