import { once } from 'node:events'
import { UsageError } from './exit-codes.ts'
import { type Column, createTable, type Field, formatFields } from './table.ts'
import { type Paint, toJson, toPlainLine, toPlainText } from './text.ts'

export const outputFormats = ['table', 'json', 'ndjson', 'name'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** Fields of responses that prove ownership, and of requests. poolctl keeps the first two in files and prints none. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'reservationToken',
  'deploymentToken',
  'objectStorageAccessKey',
  'objectStorageSecretKey',
  'accessKey',
  'secretKey',
])

/** A copy of a response without its secrets. */
export const withoutSecrets = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !SECRET_FIELDS.has(name))
      .map(([name, field]) => [name, withoutSecrets(field)]),
  )
}

/** Rows that are formatted at once. */
const BATCH_ROWS = 1_000

export interface ListView<Item> {
  /** The name of the list in JSON output. */
  readonly key: string
  readonly columns: readonly Column<Item>[]
  /** What `--output name` prints: an argument for another command. */
  readonly toName?: (item: Item) => string
  /** The line on standard error for an empty table. */
  readonly empty: string
}

export interface ItemView {
  readonly fields: readonly Field[]
  readonly name?: string
}

export interface Output {
  readonly format: OutputFormat
  readonly paint: Paint
  /** One object: lines of fields, or the object itself. */
  item(value: object, view: ItemView): Promise<void>
  /** A list, which is printed while it is read. JSON is one object with all items. */
  list<Item extends object>(items: AsyncIterable<Item> | Iterable<Item>, view: ListView<Item>): Promise<void>
  /** A list that is a part of a response: its rows for people, the whole response in JSON. */
  report<Row extends object>(value: object, rows: readonly Row[], view: ListView<Row>): Promise<void>
  /** A result in one sentence for people; `value` in JSON. */
  done(value: object, sentence: string, name?: string): Promise<void>
  /** Lines of a log as they arrive. */
  line(value: object, text: string): Promise<void>
  /** Text of several lines, such as a plan; `value` in JSON. */
  text(value: object, text: string): Promise<void>
  /** A remark for people, on standard error. */
  note(text: string): void
}

export interface OutputOptions {
  readonly format: OutputFormat
  readonly paint: Paint
  /** Columns of the terminal that shows standard output; null: not a terminal. */
  readonly width: number | null
  readonly stdout: NodeJS.WritableStream
  readonly note: (text: string) => void
}

export const createOutput = ({ format, paint, width, stdout, note }: OutputOptions): Output => {
  const write = async (text: string): Promise<void> => {
    if (!stdout.write(text)) await once(stdout, 'drain')
  }
  const lines = (texts: readonly string[]): Promise<void> =>
    texts.length === 0 ? Promise.resolve() : write(`${texts.join('\n')}\n`)
  const json = (value: object): Promise<void> =>
    write(`${toJson(withoutSecrets(value), format === 'ndjson' ? undefined : 2)}\n`)
  const name = (text: string | undefined): Promise<void> => {
    if (text === undefined) throw new UsageError('this command has no names to print; use --output json.')
    return write(`${toPlainLine(text)}\n`)
  }

  const listJson = async <Item extends object>(items: AsyncIterable<Item> | Iterable<Item>, key: string) => {
    await write(`{\n  ${JSON.stringify(key)}: [`)
    let isFirst = true
    for await (const item of items) {
      const text = toJson(withoutSecrets(item), 2).replaceAll('\n', '\n    ')
      await write(`${isFirst ? '' : ','}\n    ${text}`)
      isFirst = false
    }
    await write(isFirst ? ']\n}\n' : '\n  ]\n}\n')
  }

  const listTable = async <Item extends object>(
    items: AsyncIterable<Item> | Iterable<Item>,
    { columns, empty }: ListView<Item>,
  ) => {
    const table = createTable(columns, { width, paint })
    let batch: Item[] = []
    let count = 0
    for await (const item of items) {
      batch.push(item)
      count += 1
      if (batch.length < BATCH_ROWS) continue
      await lines(table(batch))
      batch = []
    }
    if (batch.length > 0) await lines(table(batch))
    if (count === 0) note(empty)
  }

  return {
    format,
    paint,
    note,
    async item(value, view) {
      if (format === 'name') await name(view.name)
      else if (format === 'table') await lines(formatFields(view.fields, paint))
      else await json(value)
    },
    async list(items, view) {
      if (format === 'json') await listJson(items, view.key)
      else if (format === 'table') await listTable(items, view)
      else for await (const item of items) await (format === 'ndjson' ? json(item) : name(view.toName?.(item)))
    },
    async report(value, rows, view) {
      if (format === 'json') await json(value)
      else await this.list(rows, view)
    },
    async done(value, sentence, named) {
      if (format === 'name') await name(named)
      else if (format === 'table') await write(`${toPlainLine(sentence)}\n`)
      else await json(value)
    },
    async line(value, text) {
      if (format === 'table') await write(`${text}\n`)
      else if (format === 'name') throw new UsageError('a log has no names to print; use --output ndjson.')
      // A stream cannot be one JSON document.
      else await write(`${toJson(withoutSecrets(value))}\n`)
    },
    async text(value, text) {
      if (format === 'table') await write(`${toPlainText(text).trimEnd()}\n`)
      else if (format === 'name') await name(undefined)
      else await json(value)
    },
  }
}
