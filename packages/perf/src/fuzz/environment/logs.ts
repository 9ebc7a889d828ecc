import { createReadStream, createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** The lines of a process, kept in a file until they are searched: they are too many for memory. */
export interface LogFile {
  readonly write: (line: string) => void
  /** All lines, once nothing more is written. */
  readonly lines: () => AsyncIterable<string>
  readonly close: () => Promise<void>
}

export const openLog = (path: string): LogFile => {
  const file = createWriteStream(path, { mode: 0o600 })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= new Promise(resolve => file.end(() => resolve()))
    return closed
  }
  return {
    write: line => file.write(`${line}\n`),
    lines: () => createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY }),
    close,
  }
}
