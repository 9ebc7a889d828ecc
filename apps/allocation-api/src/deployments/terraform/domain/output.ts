import { isJsonObject, type JsonObject } from '../../../lib/json.ts'
import { createLineSplitter } from '../../../lib/line-splitter.ts'
import { stripControlCharacters, toSingleLine, truncateUtf8 } from '../../../lib/sanitize-text.ts'
import type { DeploymentLogLine } from '../../domain/types.ts'
import type { Mask } from './secret-masker.ts'

type Level = DeploymentLogLine['level']

/** A line of the machine-readable UI: https://developer.hashicorp.com/terraform/internals/machine-readable-ui */
export type UiMessage =
  | {
      readonly kind: 'line'
      readonly level: Level
      /** Where the text comes from. It never contains line breaks. */
      readonly prefix: string
      readonly text: string
      /** An error diagnostic, which explains why the command fails. */
      readonly isReason: boolean
    }
  /** The outputs of the root module, without sensitive ones. */
  | { readonly kind: 'outputs'; readonly outputs: Readonly<Record<string, unknown>> }
  | { readonly kind: 'ignored' }

const ignored: UiMessage = { kind: 'ignored' }

/** Terraform reports "still creating" every 10 seconds; the log repeats it once a minute. */
const PROGRESS_LOG_INTERVAL_S = 60
const PROGRESS_REPORT_INTERVAL_S = 10

const toObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})
const toText = (value: unknown): string => (typeof value === 'string' ? value : '')

const parseJsonLine = (line: string): JsonObject => {
  if (!line.startsWith('{')) return {}
  try {
    return toObject(JSON.parse(line))
  } catch {
    return {}
  }
}

const toLevel = (word: unknown): Level => (word === 'error' ? 'error' : word === 'warn' ? 'warn' : 'info')

/** Advice against a destroy of everything but the bucket, which has to be done this way. */
const TARGETING_WARNINGS = ['Resource targeting is in effect', 'Applied changes may be incomplete']

const fromDiagnostic = ({ severity, summary, detail, address }: JsonObject): UiMessage => {
  if (TARGETING_WARNINGS.includes(toText(summary))) return ignored
  return {
    kind: 'line',
    level: severity === 'warning' ? 'warn' : 'error',
    prefix: toText(address) ? `${toText(address)}: ` : '',
    text: [toText(summary), toText(detail)].filter(Boolean).join(': '),
    isReason: severity !== 'warning',
  }
}

const isProgressDue = (elapsed: unknown): boolean =>
  typeof elapsed === 'number' &&
  elapsed >= PROGRESS_LOG_INTERVAL_S &&
  elapsed % PROGRESS_LOG_INTERVAL_S < PROGRESS_REPORT_INTERVAL_S

const fromOutputs = (value: unknown): UiMessage => {
  const entries = Object.entries(toObject(value)).map(([name, output]) => [name, toObject(output)] as const)
  // The outputs of a plan have no values yet.
  if (entries.some(([, output]) => 'action' in output)) return ignored
  const visible = entries.filter(([, output]) => output.sensitive === false && 'value' in output)
  return { kind: 'outputs', outputs: Object.fromEntries(visible.map(([name, output]) => [name, output.value])) }
}

/** Lines in any other format are kept as they are, with `defaultLevel`. */
export const parseUiMessage = (line: string, defaultLevel: Level): UiMessage => {
  const json = parseJsonLine(line)
  const hook = toObject(json.hook)
  const message = toText(json['@message'])
  if (!message) {
    // Before Terraform has parsed its arguments, it draws a frame around diagnostics.
    const text = line.replace(/^[╷│╵] ?/, '')
    return text.trim() ? { kind: 'line', level: defaultLevel, prefix: '', text, isReason: false } : ignored
  }
  switch (json.type) {
    case 'outputs':
      return fromOutputs(json.outputs)
    case 'refresh_start':
      return ignored
    case 'diagnostic':
      return fromDiagnostic(toObject(json.diagnostic))
    case 'apply_progress':
      if (!isProgressDue(hook.elapsed_seconds)) return ignored
      break
    case 'provision_progress': {
      const output = toText(hook.output)
      const prefix = `${toText(toObject(hook.resource).addr)} (${toText(hook.provisioner)}): `
      return output.trim() ? { kind: 'line', level: 'info', prefix, text: output, isReason: false } : ignored
    }
  }
  return { kind: 'line', level: toLevel(json['@level']), prefix: '', text: message, isReason: false }
}

export interface CreatedResource {
  readonly type: string
  /** The attribute that identifies it. */
  readonly id: string
}

/** The resource whose creation a line of the machine-readable UI reports as complete; null for any other line. */
export const parseCreatedResource = (line: string): CreatedResource | null => {
  if (!line.includes('"type":"apply_complete"')) return null
  const { action, resource, id_value: id } = toObject(parseJsonLine(line).hook)
  const { resource_type: type } = toObject(resource)
  return action === 'create' && typeof type === 'string' && typeof id === 'string' ? { type, id } : null
}

/**
 * The first diagnostic in output for people, on one line: its summary and its paragraphs up to the next diagnostic. Null
 * without an error.
 */
export const parseDiagnostic = (lines: readonly string[]): string | null => {
  const start = lines.findIndex(line => line.startsWith('Error: '))
  if (start < 0) return null
  const [summary = '', ...rest] = lines.slice(start)
  const next = rest.findIndex(line => /^(?:Error|Warning): /.test(line))
  const detail = toSingleLine((next < 0 ? rest : rest.slice(0, next)).join(' '))
  return [toSingleLine(summary.slice('Error: '.length)), detail].filter(Boolean).join(': ')
}

/** Characters of one input line: enough for the outputs of a module. */
const MAX_INPUT_LINE = 256 * 1_024
/** Bytes of a log line, and of a reason. */
const MAX_LINE_BYTES = 8 * 1_024
const MAX_REASON_BYTES = 1_024
const MAX_LINES = 4_000
const MAX_STDERR_LINES = 50

/** Collects the output of one command. */
export interface CommandOutput {
  write(stream: 'stdout' | 'stderr', chunk: string): void
  /** Flushes last lines without a line break. */
  end(): void
  /** The first error diagnostic, masked and on one line. */
  reason(): string | null
  /** Not masked. Undefined if the command printed none. */
  outputs(): Readonly<Record<string, unknown>> | undefined
}

/** Turns the output of the commands of one apply into log lines, masked and limited in number and size. */
export class OutputCollector {
  readonly #mask: Mask
  readonly #log: (line: DeploymentLogLine) => void
  #lineCount = 0

  constructor(mask: Mask, log: (line: DeploymentLogLine) => void) {
    this.#mask = mask
    this.#log = log
  }

  /** For the output of a command that is not logged: only its reason is of use. */
  silent(): CommandOutput {
    return new OutputCollector(this.#mask, () => {}).forPhase('end')
  }

  forPhase(phase: DeploymentLogLine['phase']): CommandOutput {
    let reason: string | null = null
    let outputs: Readonly<Record<string, unknown>> | undefined
    const stderrLines: string[] = []

    const onLine = (defaultLevel: Level) => (line: string, isCut: boolean) => {
      const message = parseUiMessage(line, defaultLevel)
      if (message.kind === 'outputs') outputs = message.outputs
      if (message.kind !== 'line') return
      const isNeeded = this.#lineCount <= MAX_LINES || (message.isReason && reason === null)
      if (!isNeeded) return
      // Mask before truncating: a truncated secret would not be recognised.
      const text = this.#mask(message.prefix) + this.#mask(stripControlCharacters(message.text), isCut)
      this.#logLimited({ phase, level: message.level, message: truncateUtf8(text, MAX_LINE_BYTES) })
      if (message.isReason) reason ??= truncateUtf8(toSingleLine(text), MAX_REASON_BYTES)
      if (defaultLevel !== 'info' && stderrLines.length < MAX_STDERR_LINES) stderrLines.push(text)
    }
    const streams = {
      stdout: createLineSplitter(MAX_INPUT_LINE, onLine('info')),
      stderr: createLineSplitter(MAX_INPUT_LINE, onLine('error')),
    }
    return {
      write(stream, chunk) {
        streams[stream].push(chunk)
      },
      end() {
        streams.stdout.end()
        streams.stderr.end()
      },
      reason() {
        const diagnostic = reason ?? parseDiagnostic(stderrLines)
        return diagnostic && truncateUtf8(diagnostic, MAX_REASON_BYTES)
      },
      outputs() {
        return outputs
      },
    }
  }

  #logLimited(line: DeploymentLogLine): void {
    this.#lineCount += 1
    if (this.#lineCount <= MAX_LINES) this.#log(line)
    if (this.#lineCount === MAX_LINES + 1) {
      this.#log({ phase: line.phase, level: 'warn', message: `Log truncated after ${MAX_LINES} lines.` })
    }
  }
}
