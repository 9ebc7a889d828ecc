import { isJsonObject, type JsonObject } from '../../../lib/json.ts'
import type { Level } from '../../domain/types.ts'

/** What one line of the binary's output comes to. */
export type Said =
  | {
      readonly kind: 'line'
      readonly level: Level
      /** Who says it; ours, so nothing in it is broken over two lines. */
      readonly lead: string
      readonly text: string
      /** An error diagnostic, which says why the command fails. */
      readonly isReason: boolean
    }
  /** The root module's, without those that are sensitive. */
  | { readonly kind: 'outputs'; readonly outputs: Readonly<Record<string, unknown>> }
  | { readonly kind: 'noise' }

const noise: Said = { kind: 'noise' }

/** How often "still creating" is told, and how often Terraform says it. In seconds. */
const PROGRESS_TOLD = 60
const PROGRESS_SAID = 10

const objectIn = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})
const textIn = (value: unknown): string => (typeof value === 'string' ? value : '')

const parse = (line: string): JsonObject => {
  if (!line.startsWith('{')) return {}
  try {
    return objectIn(JSON.parse(line))
  } catch {
    return {}
  }
}

const levelOf = (word: unknown): Level => (word === 'error' ? 'error' : word === 'warn' ? 'warn' : 'info')

const diagnosed = ({ severity, summary, detail, address }: JsonObject): Said => ({
  kind: 'line',
  level: severity === 'warning' ? 'warn' : 'error',
  lead: textIn(address) ? `${textIn(address)}: ` : '',
  text: [textIn(summary), textIn(detail)].filter(Boolean).join(': '),
  isReason: severity !== 'warning',
})

const isDue = (elapsed: unknown): boolean =>
  typeof elapsed === 'number' && elapsed >= PROGRESS_TOLD && elapsed % PROGRESS_TOLD < PROGRESS_SAID

const outputsIn = (value: unknown): Said => {
  const entries = Object.entries(objectIn(value)).map(([name, output]) => [name, objectIn(output)] as const)
  // Those of a plan have no value yet.
  if (entries.some(([, output]) => 'action' in output)) return noise
  const told = entries.filter(([, output]) => output.sensitive === false && 'value' in output)
  return { kind: 'outputs', outputs: Object.fromEntries(told.map(([name, output]) => [name, output.value])) }
}

/**
 * A line of the machine-readable output: https://developer.hashicorp.com/terraform/internals/machine-readable-ui. One
 * that is none is shown as it is, at the level of the stream that it came from.
 */
export const understand = (line: string, otherwise: Level): Said => {
  const said = parse(line)
  const hook = objectIn(said.hook)
  const message = textIn(said['@message'])
  if (!message) {
    // Before it has read its arguments Terraform draws a frame around what it complains of.
    const text = line.replace(/^[╷│╵] ?/, '')
    return text.trim() ? { kind: 'line', level: otherwise, lead: '', text, isReason: false } : noise
  }
  switch (said.type) {
    case 'outputs':
      return outputsIn(said.outputs)
    case 'refresh_start':
      return noise
    case 'diagnostic':
      return diagnosed(objectIn(said.diagnostic))
    case 'apply_progress':
      if (!isDue(hook.elapsed_seconds)) return noise
      break
    case 'provision_progress': {
      const output = textIn(hook.output)
      const lead = `${textIn(objectIn(hook.resource).addr)} (${textIn(hook.provisioner)}): `
      return output.trim() ? { kind: 'line', level: 'info', lead, text: output, isReason: false } : noise
    }
  }
  return { kind: 'line', level: levelOf(said['@level']), lead: '', text: message, isReason: false }
}
