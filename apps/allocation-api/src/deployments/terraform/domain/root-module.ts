import { type Backend, STATE_KEY_PLACEHOLDER } from '../../../config/terraform.ts'

/** Those of the module's interface that are lists; every other one is a string. */
const LISTS: ReadonlySet<string> = new Set(['provider_names'])

export interface RootModule {
  /** A relative path: Terraform would copy a module that is named by an absolute one. */
  readonly source: string
  readonly backend: Backend
  readonly stateKey: string
  readonly variables: readonly string[]
  /** Of the variables, those whose values Terraform is not to show. */
  readonly secrets: readonly string[]
}

/** What a deployment module may tell; the last of them whatever else is worth telling. Others are not asked for. */
const OUTPUTS = ['load_balancer_ip', 'control_plane_ip', 'details']

/** In the JSON syntax too the string of an argument is a template; a module's source is none. */
const literal = (text: string): string => text.replace(/[$%](?=\{)/g, '$&$&')

const filled = (value: unknown, stateKey: string): unknown => {
  if (typeof value === 'string') return literal(value.replaceAll(STATE_KEY_PLACEHOLDER, stateKey))
  if (Array.isArray(value)) return value.map(each => filled(each, stateKey))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, filled(each, stateKey)]))
}

/**
 * The module that calls the one of the deployment, in Terraform's JSON syntax. No value of a variable stands in it. What
 * it gives out is in the state in clear; Terraform refuses it where it was made from a value that is sensitive.
 */
export const rootModule = ({ source, backend, stateKey, variables, secrets }: RootModule): string => {
  const named = <Value>(names: readonly string[], bodyOf: (name: string) => Value): Record<string, Value> =>
    Object.fromEntries(names.map(name => [name, bodyOf(name)]))
  const all = [...variables, ...secrets]
  return JSON.stringify(
    {
      terraform: { backend: { [backend.type]: filled(backend.settings, stateKey) } },
      ...(all.length > 0 && {
        variable: named(all, name => ({
          type: LISTS.has(name) ? 'list(string)' : 'string',
          sensitive: secrets.includes(name),
        })),
      }),
      module: { deployment: { source, ...named(all, name => `\${var.${name}}`) } },

      // An output that the module does not have is none.
      output: named(OUTPUTS, name => ({ value: `\${try(module.deployment.${name}, null)}` })),
    },
    null,
    2,
  )
}
