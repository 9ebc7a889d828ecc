import { findUnknownVariables } from '@pool/runtime/service/unknown-variables'
import { artifacts, type Runtime, type VariableNames } from './artifacts.ts'

const withAdvice = (names: readonly string[], advice: string) => Object.fromEntries(names.map(name => [name, advice]))
const remove = (...names: readonly string[]) => withAdvice(names, 'remove it')
const tokens = withAdvice(['BEARER_TOKENS_CSV'], 'use the option tokens')

/** What this package sets, or what would lead its proxy elsewhere, and what to do instead. */
export const OWN_VARIABLES: Readonly<Record<Runtime, Readonly<Record<string, string>>>> = {
  'allocation-api': {
    ...remove('PORT', 'PDM_OPERATOR_PORT', 'PDM_LISTEN_ADDRESS', 'PDM_DATABASE_URL', 'DNSPROVIDER_LOCAL_PORT'),
    ...withAdvice(['PDM_OPERATOR_TOKENS'], 'send operatorToken of the result'),
    ...withAdvice(['DNSPROVIDER_MANAGED_DOMAINS', 'DNSPROVIDER_DOMAIN'], 'use the option pools'),
  },
  'lease-witness': {
    ...remove('PORT', 'WITNESS_LISTEN_ADDRESS', 'WITNESS_DATABASE_URL', 'WITNESS_LISTEN_URL'),
    ...tokens,
  },
  worker: tokens,
}

/** Of Node itself, which a worker does not run on. */
const OF_NODE = /^(?:NODE_|SSL_CERT_|TZ$)/

/** What is wrong with the names of the variables that a test has set: each of them must have its effect. */
export const findIgnoredNames = (
  env: Readonly<Record<string, string>>,
  runtime: Runtime,
  names: VariableNames,
): readonly string[] => {
  const own = OWN_VARIABLES[runtime]
  const passed = (env.PDM_TERRAFORM_PASS_ENV ?? '').split(/[\s,]+/)
  const isOwn = (name: string) => Object.hasOwn(own, name.replace(/_FILE$/, ''))
  const others = Object.entries(env).filter(([name]) => !isOwn(name) && (runtime === 'worker' || !OF_NODE.test(name)))
  const known = names[runtime].filter(name => !isOwn(name))
  return [
    ...Object.keys(env)
      .filter(isOwn)
      .map(name => `${name} is set by this package; ${own[name.replace(/_FILE$/, '')]}`),
    // Each name counts as one of the service, because a test sets no other.
    ...findUnknownVariables(Object.fromEntries(others), { prefixes: [''], names: [...known, ...passed] }).map(
      ({ variable, detail }) => `${variable} ${detail}`,
    ),
  ]
}

/** Throws with all of these. */
export const rejectIssues = (issues: readonly string[]): void => {
  if (issues.length > 0) throw new Error(`invalid settings: ${issues.join('; ')}`)
}

/** Throws for a variable that would have no effect. */
export const rejectIgnoredNames = async (env: Readonly<Record<string, string>>, runtime: Runtime): Promise<void> => {
  if (Object.keys(env).length > 0) rejectIssues(findIgnoredNames(env, runtime, await artifacts.readVariables()))
}
