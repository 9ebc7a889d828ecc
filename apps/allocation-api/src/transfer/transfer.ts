import type { NameRejection } from '../naming/naming.ts'
import { type ExportOptions, exportLines } from './export.ts'
import {
  type ImportedInstallation,
  type ImportedNames,
  importInstallation,
  importNames,
  type MoveRequest,
  type MoveRules,
  type RejectedImport,
} from './import.ts'

export type TransferOptions = ExportOptions & MoveRules

/** Moves installations between databases: everything but logs and credentials. */
export interface Transfer {
  /** The lines of an export, in parts. The first part comes when the database has responded. */
  export(): AsyncGenerator<string>
  /** Into an empty database. */
  import(
    chunks: AsyncIterable<Uint8Array>,
    options: { readonly isDryRun: boolean },
  ): Promise<ImportedInstallation | RejectedImport>
  /** The names of one pool into another pool. */
  importNames(
    chunks: AsyncIterable<Uint8Array>,
    request: MoveRequest,
  ): Promise<ImportedNames | NameRejection | RejectedImport>
}

export const createTransfer = (options: TransferOptions): Transfer => ({
  export: () => exportLines(options),
  import: (chunks, { isDryRun }) => importInstallation(options, chunks, { isDryRun }),
  importNames: (chunks, request) => importNames(options, chunks, request),
})
