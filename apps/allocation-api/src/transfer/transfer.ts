import { type ExportOptions, exportLines } from './export.ts'
import { type ImportOutcome, importInstallation } from './import.ts'

export type TransferOptions = ExportOptions

/** Moves installations between databases: everything but logs and credentials. */
export interface Transfer {
  /** The lines of an export. The first part is yielded when the database has responded. */
  export(): AsyncGenerator<string>
  import(chunks: AsyncIterable<Uint8Array>, options: { readonly isDryRun: boolean }): Promise<ImportOutcome>
}

export const createTransfer = (options: TransferOptions): Transfer => ({
  export: () => exportLines(options),
  import: (chunks, { isDryRun }) => importInstallation(options, chunks, { isDryRun }),
})
