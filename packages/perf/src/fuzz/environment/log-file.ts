import { createReadStream, createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** The output of a process in a file until it is searched: it is too large for memory. */
export interface LogFile {
  readonly write: (line: string) => void
  /** Every line. Close the file first. */
  readonly lines: () => AsyncIterable<string>
  readonly close: () => Promise<void>
}

export const openLogFile = (path: string): LogFile => {
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
