import { redacted } from '@pool/contract'
import {
  createLineSplitter,
  isJsonObject,
  type JsonObject,
  parseJson,
  shortenUtf8,
  stripControlCharacters,
  toSingleLine,
} from '../../../lib/text.ts'
import type { DeploymentLogLine } from '../../domain/types.ts'

const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0')

const toJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Replaces each UTF-16 code unit that matches with `\uXXXX`. */
const escapeUnicode = (text: string, pattern: RegExp): string =>
  text.replace(pattern, unit => `\\u${hex(unit.charCodeAt(0), 4)}`)

/** RFC 8259 leaves some escapes to the encoder. Go's, and so Terraform's `jsonencode`, escapes <, > and &. */
const toJsonForms = (text: string): string[] => {
  const plain = toJson(text)
  const go = escapeUnicode(plain, /[<>&\u2028\u2029]/g)
  return [plain, go, escapeUnicode(plain, /[^ -~]/g), escapeUnicode(go, /[^ -~]/g), plain.replaceAll('/', '\\/')]
}

/** Characters that encoders leave: RFC 3986, encodeURIComponent, encodeURI, Python's quote, Go's PathEscape, HTML forms; none. */
const unescaped = [/[\w.~-]/, /[\w.~!*'()-]/, /[\w.~!*'();/?:@&=+$,#-]/, /[\w.~/-]/, /[\w.~$&+=:@-]/, /[\w.*-]/, /(?!)/]

const toPercentForms = (text: string): string[] =>
  unescaped.flatMap(plain => {
    const bytes = [...Buffer.from(text)].map(byte => {
      const letter = String.fromCharCode(byte)
      return byte < 128 && plain.test(letter) ? letter : `%${hex(byte, 2).toUpperCase()}`
    })
    const encoded = bytes.join('')
    return [encoded, encoded.replaceAll('%20', '+')]
  })

const toHtmlForms = (text: string): string[] =>
  ['&quot;', '&#34;', '&#x22;', '"'].flatMap(quote =>
    ['&#39;', '&#x27;', '&#039;', '&apos;', "'"].map(apostrophe =>
      text
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;')
        .replaceAll('"', quote)
        .replaceAll("'", apostrophe),
    ),
  )

/** The template sequences of HCL's strings: https://developer.hashicorp.com/terraform/language/expressions/strings */
const toHclForms = (text: string): string[] => {
  const literal = text.replace(/[$%](?=\{)/g, '$&$&')
  return [literal, ...toJsonForms(literal)]
}

const toShellForms = (text: string): string[] => [
  text.replaceAll("'", "'\\''"),
  text.replaceAll("'", `'"'"'`),
  text.replace(/["$`\\]/g, '\\$&'),
  text.replace(/["$`\\!]/g, '\\$&'),
  text.replace(/[\\']/g, '\\$&'),
  text.replace(/[^\w.,:+/@%=-]/g, '\\$&'),
  text.replace(/[^\w.:+/@%=-]/g, '\\$&'),
]

/**
 * What the base64 encodings (RFC 4648, standard and URL-safe) of all texts with this substring have in common. It depends
 * on the offset of the substring modulo 3, and on whether the text ends with it.
 */
const toBase64Forms = (text: string): string[] => {
  const bytes = Buffer.from(text)
  const found = [0, 1, 2].flatMap(offset => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    const inside = encoded.slice([0, 2, 3][offset])
    const open = encoded.slice([0, 2, 3][offset], Math.floor(((offset + bytes.length) * 4) / 3))
    return [open, inside.replace(/=+$/, ''), inside]
  })
  const safe = found.map(form => form.replaceAll('+', '-').replaceAll('/', '_'))
  return [...found, ...safe, ...found.flatMap(toPercentForms)]
}

/** In a URL within a URL, and the forms of a whole value that was encoded twice in other ways. */
const toNestedForms = (text: string): string[] => {
  const percent = toPercentForms(text)
  const encoded = new Set([toJson(text), ...percent.slice(0, 4), Buffer.from(text).toString('base64')])
  return [
    ...percent.map(form => form.replaceAll('%', '%25')),
    ...[...encoded].flatMap(form => [...toJsonForms(form), ...toPercentForms(form), ...toBase64Forms(form)]),
  ]
}

/** The forms of a text in the output of programs that quote, escape or encode it. */
export const toEncodedForms = (text: string): readonly string[] => [
  ...new Set([
    text,
    ...toJsonForms(text),
    ...toJsonForms(text).flatMap(toJsonForms),
    ...toPercentForms(text),
    ...toHtmlForms(text),
    ...toHclForms(text),
    ...toShellForms(text),
    ...toBase64Forms(text),
    ...toNestedForms(text),
    Buffer.from(text).toString('hex'),
  ]),
]

/** Shorter values occur by chance in any output. In characters. */
const MIN_SECRET_LENGTH = 4
/** Of a secret that is wrapped over lines: the shortest fragment at the edge of a line that is masked. */
const MIN_FRAGMENT_LENGTH = 8
/** The shortest part of a secret that is masked anywhere. */
const PART_LENGTH = 16

type Range = readonly [start: number, end: number]

/** The offsets of `needle` in `text`, overlapping matches included. */
const findAll = (text: string, needle: string): number[] => {
  const found: number[] = []
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) found.push(at)
  return found
}

/** Without the difference of case, at the same offsets. */
const fold = (text: string): string =>
  text.replace(/\p{Lu}/gu, letter => {
    const lower = letter.toLowerCase()
    return lower.length === letter.length ? lower : letter
  })

const toParts = (text: string, length: number): string[] =>
  Array.from({ length: Math.max(0, text.length - length + 1) }, (_, at) => text.slice(at, at + length))

/** A line that starts with the end of the needle, ends with its start, or lies entirely within it. */
const findFragments = (line: string, offset: number, needle: string): Range[] => {
  if (line.length < MIN_FRAGMENT_LENGTH || needle.length <= MIN_FRAGMENT_LENGTH) return []
  const head = findAll(needle, line.slice(0, MIN_FRAGMENT_LENGTH)).flatMap((at): Range[] => {
    if (needle.startsWith(line, at)) return [[offset, offset + line.length]]
    const rest = needle.slice(at)
    return line.startsWith(rest) ? [[offset, offset + rest.length]] : []
  })
  const tail = findAll(needle, line.slice(-MIN_FRAGMENT_LENGTH)).flatMap((at): Range[] => {
    const prefix = needle.slice(0, at + MIN_FRAGMENT_LENGTH)
    return line.endsWith(prefix) ? [[offset + line.length - prefix.length, offset + line.length]] : []
  })
  return [...head, ...tail]
}

const redact = (text: string, ranges: readonly Range[]): string => {
  let [clean, done, covered] = ['', 0, -1]
  for (const [start, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (start > covered) clean += text.slice(done, start) + redacted
    covered = Math.max(covered, end)
    done = covered
  }
  return clean + text.slice(done)
}

const splitLines = (text: string): { line: string; offset: number }[] =>
  [...text.matchAll(/[^\n]+/g)].map(({ 0: whole, index }) => {
    const line = whole.trim()
    return { line, offset: index + whole.indexOf(line) }
  })

/** `isCut`: the text was truncated, so its end may be the start of any secret and is masked entirely. */
export type Mask = (text: string, isCut?: boolean) => string

/**
 * Masks every secret of at least four characters in all its encoded forms, in upper and in lower case, and every part of a
 * form that has 16 characters. Not covered: other encodings, three encodings in one another, shorter parts, and fragments of
 * under eight characters of a secret that is wrapped over lines.
 */
export const createMask = (secrets: readonly string[]): Mask => {
  const values = secrets.flatMap(secret => [secret, stripControlCharacters(secret), ...secret.split(/[\r\n]+/)])
  const known = [...new Set(values)].filter(secret => secret.length >= MIN_SECRET_LENGTH)
  const needles = [...new Set(known.flatMap(toEncodedForms).map(fold))].filter(
    needle => needle.length >= MIN_SECRET_LENGTH,
  )
  const longest = Math.max(0, ...needles.map(needle => needle.length))
  const parts = new Set(needles.flatMap(needle => toParts(needle, PART_LENGTH)))
  /** Of most lines, neither edge can be that of a fragment. */
  const edges = new Set(needles.flatMap(needle => toParts(needle, MIN_FRAGMENT_LENGTH)))
  const mayHaveFragment = ({ line }: { readonly line: string }): boolean =>
    edges.has(line.slice(0, MIN_FRAGMENT_LENGTH)) || edges.has(line.slice(-MIN_FRAGMENT_LENGTH))
  const short = needles.filter(needle => needle.length < PART_LENGTH)
  return (text, isCut = false) => {
    const folded = fold(text)
    const lines = splitLines(folded).filter(mayHaveFragment)
    const ranges = [
      ...toParts(folded, PART_LENGTH).flatMap((part, at): Range[] => (parts.has(part) ? [[at, at + PART_LENGTH]] : [])),
      ...short.flatMap(needle => findAll(folded, needle).map((at): Range => [at, at + needle.length])),
      ...needles.flatMap(needle => lines.flatMap(({ line, offset }) => findFragments(line, offset, needle))),
    ]
    if (isCut && longest > 0) ranges.push([Math.max(0, text.length - longest), text.length])
    return redact(text, ranges)
  }
}

/** Shorter sensitive values, such as the name of a region, occur elsewhere too. */
const MIN_SENSITIVE_LENGTH = 8
/** Each costs a search in every text. */
const MAX_SENSITIVE_FORMS = 2_000

/**
 * Masks values that the module marks as sensitive wherever they occur: as they are, as in JSON, and line by line. Terraform
 * loses the mark where a provider, a program or an error copies such a value.
 */
export const createValueMask = (values: Iterable<string>): Mask => {
  const forms = [...values].flatMap(value => {
    const lines = value.split(/[\r\n]+/).filter(line => line.length >= PART_LENGTH)
    return [value, toJson(value), ...lines].filter(form => form.length >= MIN_SENSITIVE_LENGTH)
  })
  const longestFirst = [...new Set(forms)].toSorted((a, b) => b.length - a.length).slice(0, MAX_SENSITIVE_FORMS)
  return text => longestFirst.reduce((masked, form) => masked.replaceAll(form, redacted), text)
}

/** Masks every string in a JSON value. */
export const maskValue = (value: unknown, mask: Mask): unknown => {
  if (typeof value === 'string') return mask(value)
  if (Array.isArray(value)) return value.map(item => maskValue(item, mask))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [mask(name), maskValue(item, mask)]))
}

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

const parseJsonLine = (line: string): JsonObject => (line.startsWith('{') ? toObject(parseJson(line)) : {})

const toLevel = (word: unknown): Level => (word === 'error' ? 'error' : word === 'warn' ? 'warn' : 'info')

/** Advice against a destroy of everything but the bucket, which has to be done this way. */
const TARGETING_WARNINGS = ['Resource targeting is in effect', 'Applied changes may be incomplete']

/** Where a diagnostic points to, without the code there, and without the folders of this machine. */
const toPlace = (file: string, line: string, context: string): string => {
  const name = file
    .split('/')
    .slice(-2)
    .filter(part => !/^\.*$/.test(part))
  return `on ${name.join('/')} line ${line}${context && `, in ${context}`}`
}

const withPlace = (summary: string, place: string): string => (place ? `${summary} (${place})` : summary)

const FAILED_COMMAND = "Error running command '"

/** The command of a provisioner can hold what Terraform hides elsewhere. What follows it is the error of the system, without quotes. */
const dropCommand = (detail: string): string => {
  if (!detail.startsWith(FAILED_COMMAND)) return detail
  const [, rest = 'its error is not shown.'] =
    /': ([^'\n]*\. Output: .*)$/s.exec(detail.slice(detail.lastIndexOf("': "))) ?? []
  return `Error running the command: ${rest}`
}

/** What Terraform logs instead of the output of a provisioner whose configuration has a sensitive value. */
const HIDDEN_OUTPUT = '(output suppressed due to '

/** The error of a provisioner repeats its output, also where Terraform has hidden it. */
const dropProvisionerOutput = (text: string): string =>
  text.replace(
    /(: Error running the command: [^\n]*?\. Output: ).*$/s,
    '$1(hidden, because it may have a sensitive value)',
  )

const fromDiagnostic = ({ severity, summary, detail, address, range, snippet }: JsonObject): UiMessage => {
  const { filename, start } = toObject(range)
  const { line } = toObject(start)
  const place = filename ? toPlace(toText(filename), String(line), toText(toObject(snippet).context)) : ''
  if (TARGETING_WARNINGS.includes(toText(summary))) return ignored
  return {
    kind: 'line',
    level: severity === 'warning' ? 'warn' : 'error',
    prefix: toText(address) ? `${toText(address)}: ` : '',
    text: [withPlace(toText(summary), place), dropCommand(toText(detail))].filter(Boolean).join(': '),
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
    // Before Terraform has parsed its arguments, it draws a frame (│ ╵ ╷) around diagnostics.
    const text = line.replace(/^[\u2502\u2575\u2577] ?/, '')
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
  return { kind: 'line', level: toLevel(json['@level']), prefix: '', text: toSingleLine(message), isReason: false }
}

/** What a line of the machine-readable UI reports about the creation of a resource. */
export type CreationEvent =
  | { readonly kind: 'started' | 'failed'; readonly address: string }
  /** `id`: the attribute that identifies it. */
  | { readonly kind: 'complete'; readonly address: string; readonly type: string; readonly id: string }
  /** A provider ended during a call, so a creation that failed may have made something. */
  | { readonly kind: 'provider-lost' }

const CREATION_EVENTS: Readonly<Record<string, 'started' | 'complete' | 'failed'>> = {
  apply_start: 'started',
  apply_complete: 'complete',
  apply_errored: 'failed',
}
const PROVIDER_LOST = /"summary":"(?:Plugin did not respond|Plugin error|Request cancelled)"/

/** Null for a line that reports something else. */
export const parseCreation = (line: string): CreationEvent | null => {
  if (line.includes('"type":"diagnostic"') && PROVIDER_LOST.test(line)) return { kind: 'provider-lost' }
  if (!/"type":"apply_(?:start|complete|errored)"/.test(line)) return null
  const { type: event, hook } = parseJsonLine(line)
  const { action, resource, id_value: id } = toObject(hook)
  const { addr: address, resource_type: type } = toObject(resource)
  const kind = CREATION_EVENTS[toText(event)]
  if (action !== 'create' || typeof address !== 'string' || !kind) return null
  return kind === 'complete' ? { kind, address, type: toText(type), id: toText(id) } : { kind, address }
}

/** The code that an error points to, its place excepted, and the values of its expressions (├ │). */
const SNIPPET = /^\s*(?:\d+: |[\u251c\u2502])/
const PLACE = /^\s*on (\S.*) line (\d+)(?:, in (.*))?:$/
const DIAGNOSTIC = /^(?:(?:Error|Warning)(?=: )|panic: |fatal error: )/

/**
 * The first error in output for people, on one line: its summary, its place and its paragraphs up to the next diagnostic.
 * Null without one.
 */
export const parseDiagnostic = (lines: readonly string[]): string | null => {
  const start = lines.findIndex(line => DIAGNOSTIC.test(line) && !line.startsWith('Warning: '))
  if (start < 0) return null
  const [summary = '', ...rest] = lines.slice(start)
  const next = rest.findIndex(line => DIAGNOSTIC.test(line))
  const paragraphs = (next < 0 ? rest : rest.slice(0, next)).filter(line => !SNIPPET.test(line))
  const [, file = '', line = '', context = ''] = paragraphs.map(text => PLACE.exec(text)).find(found => found) ?? []
  const detail = toSingleLine(paragraphs.filter(text => !PLACE.test(text)).join(' '))
  const place = file && toPlace(file, line, context)
  return [withPlace(toSingleLine(summary.replace(/^Error: /, '')), place), detail].filter(Boolean).join(': ')
}

/** Characters of one input line: enough for the outputs of a module. */
const MAX_INPUT_LINE = 256 * 1_024
/** Half of a message says nothing to people. */
const CUT_MESSAGE = 'A message of Terraform that is longer than 256 KiB is not shown.'
/** Bytes of a log line, and of a reason: the start and the end of one that is longer. */
const MAX_LINE_BYTES = 8 * 1_024
const MAX_REASON_BYTES = 1_024
/** A log keeps its first lines, and the last ones of each command. */
const MAX_LINES = 3_500
const MAX_LAST_LINES = 500
const LIMIT_REACHED = `The log has ${MAX_LINES} lines. Of what follows, the last ${MAX_LAST_LINES} lines appear when Terraform has ended.`
/** Characters of each of the last lines, until it is masked. */
const MAX_KEPT_LINE = 16 * 1_024
/** Errors of a command, and lines of its standard error from the first error on. */
const MAX_ERRORS = 50
/** Without an error, the last lines of the standard error are the reason. */
const MAX_REASON_LINES = 20

/** A line that is not masked yet. */
interface RawLine {
  readonly level: Level
  readonly prefix: string
  readonly text: string
  readonly isCut: boolean
}

/** Collects the output of one command. */
export interface CommandOutput {
  write(stream: 'stdout' | 'stderr', chunk: string): void
  /** Logs what was kept back: the end of a long log, then the errors, masked by all that is sensitive by now. */
  end(): void
  /** The first error, else the last lines of the standard error; masked and on one line. Call it after `end`. */
  reason(): string | null
  /** Not masked. Undefined if the command printed none. */
  outputs(): Readonly<Record<string, unknown>> | undefined
}

/** Turns the output of the commands of one apply into log lines, masked and limited in number and size. */
export class OutputCollector {
  readonly #maskSecrets: Mask
  readonly #log: (line: DeploymentLogLine) => void
  readonly #sensitive: Set<string>
  #maskSensitive: Mask = text => text
  #lineCount = 0

  constructor(mask: Mask, log: (line: DeploymentLogLine) => void, sensitive: ReadonlySet<string> = new Set()) {
    this.#maskSecrets = mask
    this.#log = log
    this.#sensitive = new Set(sensitive)
    this.hide([])
  }

  /** From now on, masks these values too, which the module marks as sensitive. */
  hide(values: readonly string[]): void {
    for (const value of values) this.#sensitive.add(value)
    this.#maskSensitive = createValueMask(this.#sensitive)
  }

  /** For the output of a command that is not logged: only its reason is of use. */
  silent(): CommandOutput {
    return new OutputCollector(this.#maskSecrets, () => {}, this.#sensitive).forPhase('end')
  }

  forPhase(phase: DeploymentLogLine['phase']): CommandOutput {
    let outputs: Readonly<Record<string, unknown>> | undefined
    let reason: string | null = null
    let hasHiddenOutput = false
    let leftOutCount = 0
    const lastLines: RawLine[] = []
    const errors: RawLine[] = []
    const stderr: { readonly first: RawLine[]; readonly last: RawLine[] } = { first: [], last: [] }

    const log = (level: Level, message: string) => this.#log({ phase, level, message })
    const logLine = (line: RawLine) => log(line.level, shortenUtf8(this.#toText(line), MAX_LINE_BYTES))
    const keepStderr = (line: RawLine) => {
      const { first, last } = stderr
      if (first.length > 0 ? first.length < MAX_ERRORS : DIAGNOSTIC.test(stripControlCharacters(line.text)))
        first.push(line)
      if (line.text.trim() && last.push(line) > MAX_REASON_LINES) last.shift()
    }
    const onLine = (defaultLevel: Level) => (text: string, isCut: boolean) => {
      hasHiddenOutput ||= text.includes(HIDDEN_OUTPUT)
      const message = parseUiMessage(isCut && text.startsWith('{') ? CUT_MESSAGE : text, defaultLevel)
      if (message.kind === 'outputs') outputs = message.outputs
      if (message.kind !== 'line') return
      const line = { ...message, isCut }
      if (defaultLevel === 'error') keepStderr(line)
      if (message.isReason) {
        if (errors.length < MAX_ERRORS) errors.push(line)
        return
      }
      this.#lineCount += 1
      if (this.#lineCount <= MAX_LINES) return logLine(line)
      if (lastLines.length === 0) log('warn', LIMIT_REACHED)
      lastLines.push({
        ...line,
        text: line.text.slice(0, MAX_KEPT_LINE),
        isCut: isCut || line.text.length > MAX_KEPT_LINE,
      })
      if (lastLines.length <= MAX_LAST_LINES) return
      lastLines.shift()
      leftOutCount += 1
    }
    const streams = {
      stdout: createLineSplitter(MAX_INPUT_LINE, onLine('info')),
      stderr: createLineSplitter(MAX_INPUT_LINE, onLine('error')),
    }
    return {
      write(stream, chunk) {
        streams[stream].push(chunk)
      },
      end: () => {
        streams.stdout.end()
        streams.stderr.end()
        if (leftOutCount > 0) log('warn', `… ${leftOutCount.toLocaleString('en')} lines left out …`)
        for (const line of lastLines) logLine(line)
        const shown = hasHiddenOutput
          ? errors.map(line => ({ ...line, text: dropProvisionerOutput(line.text) }))
          : errors
        for (const line of shown) logLine(line)
        const toTexts = (lines: readonly RawLine[]) => lines.map(line => this.#toText(line))
        const [error] = toTexts(shown)
        reason = error ?? parseDiagnostic(toTexts(stderr.first)) ?? (toTexts(stderr.last).join(' ') || null)
      },
      reason() {
        return reason && shortenUtf8(toSingleLine(reason), MAX_REASON_BYTES)
      },
      outputs() {
        return outputs
      },
    }
  }

  /** Masks before anything is truncated: a truncated secret would not be recognised. */
  #toText({ prefix, text, isCut }: RawLine): string {
    const mask: Mask = (part, ...more) => this.#maskSensitive(this.#maskSecrets(part, ...more))
    return mask(prefix) + mask(stripControlCharacters(text), isCut)
  }
}
