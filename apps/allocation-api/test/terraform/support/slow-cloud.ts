import { startProvider } from '@pool/test-kit/terraform/provider.ts'
import type { Attributes, Schema } from '@pool/test-kit/terraform/schema.ts'
import { toModuleSecrets, toModuleVariables } from '../../../src/deployments/run.ts'

/** When a run can be interrupted. A machine exists at the cloud before Terraform gets the response to its creation. */
export const MOMENTS = ['plan', 'first is requested', 'first exists', 'second is requested', 'second exists'] as const
export type Moment = (typeof MOMENTS)[number]

const schema: Schema = {
  id: { type: 'string', computed: true },
  name: { type: 'string', required: true, replaces: true },
}

/** A provider whose creations last until the test ends them, and that ignores an interrupt. It outlives every Terraform. */
export const startSlowCloud = async (held: Moment | null) => {
  /** Names of machines by their ids. */
  const machines = new Map<string, string>()
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const interrupted = Promise.withResolvers<void>()
  const at = async (moment: Moment): Promise<void> => {
    if (moment !== held) return
    reached.resolve()
    await released.promise
  }
  const provider = await startProvider({
    name: 'Cloud',
    source: 'test/cloud',
    schema: {},
    onStop: () => interrupted.resolve(),
    resources: {
      cloud_machine: {
        schema,
        behavior: {
          async write(planned) {
            const name = planned.name as 'first' | 'second'
            await at(`${name} is requested`)
            const id = `machine-${machines.size + 1}`
            machines.set(id, name)
            await at(`${name} exists`)
            return { ...planned, id }
          },
          read: state => (machines.has(String(state.id)) ? state : null),
          remove: state => void machines.delete(String(state.id)),
          import: id => ({ id }),
        },
      },
    },
    dataSources: {
      cloud_image: {
        schema,
        async read(config): Promise<Attributes> {
          await at('plan')
          return { ...config, id: 'image' }
        },
      },
    },
  })
  return {
    machines,
    reached: reached.promise,
    /** A provider that reads data is not told of an interrupt. */
    interrupted: held === 'plan' ? Promise.resolve() : interrupted.promise,
    release: () => released.resolve(),
    reattach: provider.reattach,
    stop: provider.stop,
  }
}

const names = [
  ...Object.keys(toModuleVariables('', { storage: null } as never, { provider: '', domain: '' })),
  ...Object.keys(toModuleSecrets(null)),
]

/** Two machines, one after the other. */
export const slowModule = `
terraform {
  required_providers { cloud = { source = "test/cloud" } }
}
${names.map(name => `variable "${name}" {}`).join('\n')}
data "cloud_image" "image" { name = "image" }
resource "cloud_machine" "first" { name = data.cloud_image.image.id == "" ? "" : "first" }
resource "cloud_machine" "second" { name = cloud_machine.first.id == "" ? "" : "second" }
output "load_balancer_ip" { value = "198.18.0.1" }
`
