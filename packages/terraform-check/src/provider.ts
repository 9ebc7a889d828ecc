import { fileURLToPath } from 'node:url'
import {
  type GrpcObject,
  type handleUnaryCall,
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServiceClientConstructor,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { type Account, Refused } from './account.ts'
import { isTypeName, provider, resources, type TypeName } from './cloudflare-schema.ts'
import { plan } from './plan.ts'
import { resourcesOf } from './resources.ts'
import { complete, schemaToWire } from './schema.ts'
import { type Attributes, fromWire, isObject, toWire } from './value.ts'

type Wire = { msgpack: Uint8Array } | null
interface Request {
  readonly type_name: string
  readonly id: string
  readonly raw_state: { json: Uint8Array } | null
  readonly config: Wire
  readonly current_state: Wire
  readonly prior_state: Wire
  readonly proposed_new_state: Wire
  readonly planned_state: Wire
}

const definition = loadSync(fileURLToPath(new URL('./provider.proto', import.meta.url)), {
  keepCase: true,
  longs: Number,
  defaults: true,
})
const { Provider } = loadPackageDefinition(definition).tfplugin6 as GrpcObject & { Provider: ServiceClientConstructor }

const error = (summary: string, detail: string, attribute?: string): object => ({
  severity: 1,
  summary,
  detail,
  ...(attribute ? { attribute: { steps: [{ attribute_name: attribute }] } } : {}),
})

const answering = (answer: (request: Request) => object): handleUnaryCall<Request, object> => {
  return ({ request }, callback) => {
    try {
      callback(null, answer(request))
    } catch (reason) {
      if (!(reason instanceof Refused)) return callback(reason as Error)
      callback(null, { diagnostics: [error('Cloudflare refused the request', reason.message)] })
    }
  }
}

function typeOf({ type_name }: Request): TypeName {
  if (!isTypeName(type_name)) throw new Error(`no resource ${type_name}`)
  return type_name
}

function servicesOf(account: Account, directory: string) {
  const behind = resourcesOf(account, directory)
  return {
    GetProviderSchema: answering(() => ({
      provider: schemaToWire(provider),
      resource_schemas: Object.fromEntries(
        Object.entries(resources).map(([name, schema]) => [name, schemaToWire(schema)]),
      ),
    })),
    ValidateProviderConfig: answering(() => ({})),
    ConfigureProvider: answering(() => ({})),
    StopProvider: answering(() => ({})),

    ValidateResourceConfig: answering(request => {
      const config = fromWire(request.config)
      const fault = isObject(config) ? behind[typeOf(request)].fault?.(config) : null
      return { diagnostics: fault ? [error('Invalid attribute', fault, 'content_sha256')] : [] }
    }),

    UpgradeResourceState: answering(request => {
      const state = JSON.parse(Buffer.from(request.raw_state?.json ?? []).toString()) as Attributes
      return { upgraded_state: toWire(complete(resources[typeOf(request)], state)) }
    }),

    ReadResource: answering(request => {
      const state = fromWire(request.current_state)
      const now = isObject(state) ? behind[typeOf(request)].read(state) : null
      return { new_state: toWire(now && complete(resources[typeOf(request)], now)) }
    }),

    PlanResourceChange: answering(request => {
      const { planned, replaces } = plan(
        resources[typeOf(request)],
        fromWire(request.prior_state),
        fromWire(request.proposed_new_state),
        fromWire(request.config),
      )
      const requires_replace = replaces.map(name => ({ steps: [{ attribute_name: name }] }))
      return { planned_state: toWire(planned), requires_replace }
    }),

    ApplyResourceChange: answering(request => {
      const resource = behind[typeOf(request)]
      const [prior, planned] = [fromWire(request.prior_state), fromWire(request.planned_state)]
      if (isObject(planned)) return { new_state: toWire(resource.write(planned, isObject(prior) ? prior : null)) }
      if (isObject(prior)) resource.remove(prior)
      return { new_state: toWire(null) }
    }),

    ImportResourceState: answering(request => {
      const state = complete(resources[typeOf(request)], behind[typeOf(request)].named(request.id.split('/')))
      return { imported_resources: [{ type_name: request.type_name, state: toWire(state) }] }
    }),
  }
}

export interface RunningProvider {
  /** The value of TF_REATTACH_PROVIDERS that makes Terraform use this provider and download none. */
  readonly reattach: string
  stop(): void
}

export async function startProvider(account: Account, directory: string): Promise<RunningProvider> {
  const server = new Server()
  server.addService(Provider.service, servicesOf(account, directory))
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (reason, bound) =>
      reason ? reject(reason) : resolve(bound),
    )
  })
  const address = {
    Protocol: 'grpc',
    ProtocolVersion: 6,
    Pid: process.pid,
    Test: true,
    Addr: { Network: 'tcp', String: `127.0.0.1:${port}` },
  }
  return {
    // One name for Terraform, one for OpenTofu.
    reattach: JSON.stringify({
      'registry.terraform.io/cloudflare/cloudflare': address,
      'registry.opentofu.org/cloudflare/cloudflare': address,
    }),
    stop: () => server.forceShutdown(),
  }
}
