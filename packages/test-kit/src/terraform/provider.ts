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
import { ApiError, type Provider, ProviderError } from './resource.ts'
import {
  type Attributes,
  fillMissingAttributes,
  findReadOnly,
  fromWire,
  isObject,
  planChange,
  schemaToWire,
  toWire,
} from './schema.ts'

type Wire = { msgpack: Uint8Array } | null
interface Request {
  readonly type_name: string
  readonly id: string
  readonly raw_state: { json: Uint8Array } | null
  readonly config: Wire
  readonly current_state: Wire
  readonly prior_state: Wire
  readonly new_state: Wire
}

const definition = loadSync(fileURLToPath(new URL('./provider.proto', import.meta.url)), {
  keepCase: true,
  longs: Number,
  defaults: true,
})
const { Provider: protocol } = loadPackageDefinition(definition).tfplugin6 as GrpcObject & {
  Provider: ServiceClientConstructor
}

const error = (summary: string, detail: string, attribute?: string): object => ({
  severity: 1,
  summary,
  detail,
  ...(attribute ? { attribute: { steps: [{ attribute_name: attribute }] } } : {}),
})

function createService({
  name,
  schema,
  resources,
  hasLegacyTypes = false,
  dataSources = {},
  configure,
  onStop,
}: Provider) {
  const handler = (handle: (request: Request) => object | Promise<object>): handleUnaryCall<Request, object> => {
    return async ({ request }, callback) => {
      try {
        callback(null, await handle(request))
      } catch (reason) {
        if (reason instanceof ProviderError) {
          const diagnostics = reason.summaries.map(summary => error(summary, ''))
          return callback(null, { diagnostics, ...(reason.state && { new_state: toWire(reason.state) }) })
        }
        if (!(reason instanceof ApiError)) return callback(reason as Error)
        callback(null, { diagnostics: [error(`${name} rejected the request`, reason.message)] })
      }
    }
  }
  const findResource = ({ type_name }: Request) => {
    const resource = resources[type_name]
    if (!resource) throw new Error(`unknown resource type ${type_name}`)
    return resource
  }

  const findDataSource = ({ type_name }: Request) => {
    const dataSource = dataSources[type_name]
    if (!dataSource) throw new Error(`unknown data source ${type_name}`)
    return dataSource
  }

  return {
    GetProviderSchema: handler(() => ({
      provider: schemaToWire(schema),
      resource_schemas: Object.fromEntries(
        Object.entries(resources).map(([type, { schema, version }]) => [type, schemaToWire(schema, version)]),
      ),
      data_source_schemas: Object.fromEntries(
        Object.entries(dataSources).map(([type, { schema }]) => [type, schemaToWire(schema)]),
      ),
    })),
    ValidateProviderConfig: handler(() => ({})),
    ConfigureProvider: handler(request => {
      const config = fromWire(request.config)
      if (isObject(config)) configure?.(config)
      return {}
    }),
    StopProvider: handler(() => {
      onStop?.()
      return {}
    }),

    ValidateResourceConfig: handler(request => {
      const config = fromWire(request.config)
      const { schema, behavior } = findResource(request)
      if (!isObject(config)) return { diagnostics: [] }
      const readOnly = findReadOnly(schema, config).map(({ path, detail }) =>
        error('Value for unconfigurable attribute', detail, path),
      )
      const fault = behavior.validate?.(config)
      return {
        diagnostics: fault
          ? [...readOnly, error(fault.summary ?? 'Invalid attribute', fault.detail, fault.attribute)]
          : readOnly,
      }
    }),

    UpgradeResourceState: handler(request => {
      const state = JSON.parse(Buffer.from(request.raw_state?.json ?? []).toString()) as Attributes
      return { state: toWire(fillMissingAttributes(findResource(request).schema, state)) }
    }),

    ReadResource: handler(async request => {
      const { schema, behavior } = findResource(request)
      const state = fromWire(request.current_state)
      const now = isObject(state) ? await behavior.read(state) : null
      return { state: toWire(now && fillMissingAttributes(schema, now)) }
    }),

    PlanResourceChange: handler(request => {
      const { planned, replaces } = planChange(
        findResource(request).schema,
        fromWire(request.prior_state),
        fromWire(request.new_state),
        fromWire(request.config),
        hasLegacyTypes,
      )
      const requires_replace = replaces.map(name => ({ steps: [{ attribute_name: name }] }))
      return { planned_state: toWire(planned), requires_replace, legacy_type_system: hasLegacyTypes }
    }),

    ApplyResourceChange: handler(async request => {
      const { behavior } = findResource(request)
      const [prior, planned] = [fromWire(request.prior_state), fromWire(request.new_state)]
      const config = fromWire(request.config)
      if (isObject(planned) && isObject(config)) {
        const new_state = toWire(await behavior.write(planned, isObject(prior) ? prior : null, config))
        return { new_state, legacy_type_system: hasLegacyTypes }
      }
      if (isObject(prior)) await behavior.remove(prior)
      return { new_state: toWire(null) }
    }),

    ValidateDataResourceConfig: handler(() => ({ diagnostics: [] })),

    ReadDataSource: handler(async request => {
      const { schema, read } = findDataSource(request)
      const config = fromWire(request.config)
      return { state: toWire(fillMissingAttributes(schema, await read(isObject(config) ? config : {}))) }
    }),

    ImportResourceState: handler(async request => {
      const { schema, behavior } = findResource(request)
      const state = fillMissingAttributes(schema, await behavior.import(request.id))
      return { imported_resources: [{ type_name: request.type_name, state: toWire(state) }] }
    }),
  }
}

export interface RunningProvider {
  /** The value of TF_REATTACH_PROVIDERS: Terraform uses this provider and downloads none. */
  readonly reattach: string
  stop(): void
}

/** The same for several providers. */
export async function startProviders(...providers: readonly Provider[]): Promise<RunningProvider> {
  const running = await Promise.all(providers.map(startProvider))
  return {
    reattach: JSON.stringify(Object.assign({}, ...running.map(({ reattach }) => JSON.parse(reattach)))),
    stop: () => {
      for (const { stop } of running) stop()
    },
  }
}

/**
 * Terraform cancels every call within a second if it sees no process of this number. An isolated one sees its own processes
 * only, and a process 1 in any case. Only root may look for that of the machine.
 */
const VISIBLE_PID = process.getuid?.() === 0 ? 1 : process.pid

export async function startProvider(provider: Provider): Promise<RunningProvider> {
  const server = new Server()
  server.addService(protocol.service, createService(provider))
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (reason, bound) =>
      reason ? reject(reason) : resolve(bound),
    )
  })
  const address = {
    Protocol: 'grpc',
    ProtocolVersion: 6,
    Pid: VISIBLE_PID,
    Test: true,
    Addr: { Network: 'tcp', String: `127.0.0.1:${port}` },
  }
  return {
    // The registries of Terraform and OpenTofu.
    reattach: JSON.stringify({
      [`registry.terraform.io/${provider.source}`]: address,
      [`registry.opentofu.org/${provider.source}`]: address,
    }),
    stop: () => server.forceShutdown(),
  }
}
