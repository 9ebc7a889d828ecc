import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What the service must still know about a name after a restart. The key and the token are secrets. */
export interface NameRecord {
  /** The base of the Idempotency-Keys of its calls. */
  readonly key: string
  /** Absent until the name is reserved. */
  readonly reservationToken?: string
  /** Absent until the name is committed. */
  readonly isCommitted?: true
}

export type ReservedName = NameRecord & Required<Pick<NameRecord, 'reservationToken'>>

/** One file for each name, readable by this user only. A service with several replicas has a table instead. */
export class NameStore {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  async read(name: string): Promise<NameRecord | undefined> {
    try {
      return JSON.parse(await readFile(this.#path(name), 'utf8'))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw error
    }
  }

  /** Replaces the file in one step, so that a crash leaves the former record or the new one. */
  async write(name: string, record: NameRecord): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const temporary = `${this.#path(name)}.new`
    await writeFile(temporary, JSON.stringify(record), { mode: 0o600, flush: true })
    await rename(temporary, this.#path(name))
  }

  remove(name: string): Promise<void> {
    return rm(this.#path(name), { force: true })
  }

  #path(name: string): string {
    return join(this.#folder, `${name}.json`)
  }
}
