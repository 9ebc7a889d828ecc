import { allocationApiDocument } from './allocation-api.ts'
import { leaseWitnessDocument } from './lease-witness.ts'

interface DocumentFile {
  readonly service: string
  readonly create: () => object
  /** For readers and generators: the current document. */
  readonly current: URL
  /** The document of the last release, which the current one must not break. */
  readonly released: URL
}

const toDocumentFile = (service: string, create: () => object): DocumentFile => ({
  service,
  create,
  current: new URL(`../../../docs/reference/${service}.openapi.json`, import.meta.url),
  released: new URL(`./released/${service}.openapi.json`, import.meta.url),
})

export const documentFiles: readonly DocumentFile[] = [
  toDocumentFile('allocation-api', allocationApiDocument),
  toDocumentFile('lease-witness', leaseWitnessDocument),
]

export const toFileText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`
