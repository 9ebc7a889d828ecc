import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type RunDocument, readDocuments } from './documents.ts'
import { pageFiles } from './page.ts'

const FOLDER = 'benchmarks'

export type Read =
  | { readonly kind: 'read'; readonly runs: readonly RunDocument[] }
  | { readonly kind: 'fault'; readonly detail: string }

export const readRuns = async (files: readonly string[]): Promise<Read> => {
  const runs: RunDocument[] = []
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => null)
    if (text === null) return { kind: 'fault', detail: `${file} cannot be read` }
    const documents = readDocuments(text)
    if (!documents) return { kind: 'fault', detail: `${file} is not what --json prints` }
    runs.push(...documents)
  }
  return { kind: 'read', runs }
}

/** Into a folder of its own below `folder`; what else is there stays. Returns the files written. */
export const writePage = async (folder: string, runs: readonly RunDocument[]): Promise<string[]> => {
  const own = join(folder, FOLDER)
  await mkdir(own, { recursive: true })
  const files = pageFiles(runs)
  for (const { name, text } of files) await writeFile(join(own, name), text)
  return files.map(({ name }) => join(own, name))
}
