import { createReadStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { CommandSpec } from '../command.ts'
import { EXIT, LocalError, UsageError } from '../exit-codes.ts'
import { hasErrorCode } from '../private-file.ts'
import { toCount } from '../text.ts'
import { parsePool } from '../values.ts'
import { dryRunFlag, NOTHING_CHANGED, toText, yesFlag } from './flags.ts'

const PROGRESS_LINES = 1_000

export const exportCommand: CommandSpec = {
  name: 'export',
  summary: 'Write the installation to a file: everything but logs and credentials',
  description:
    'The file has hashes of tokens: keep it as you keep the database. Only you can read it. It is written under another name until it is complete, so an interrupted export leaves no file.',
  arguments: [{ name: 'FILE', description: 'the file to write; it must not exist', suggest: 'files' }],
  examples: ['export installation.ndjson'],
  operations: ['exportInstallation'],
  async run(session, { args }) {
    const path = String(args[0])
    const exists = await stat(path).then(
      () => true,
      () => false,
    )
    if (exists) throw new UsageError(`${path} exists; name a new file.`)
    const api = await session.api()
    const temporary = `${path}.${process.pid}.tmp`
    const file = await open(temporary, 'wx', 0o600).catch((error: unknown) => {
      throw new LocalError(
        hasErrorCode(error, 'ENOENT')
          ? `the folder of ${path} does not exist; create it.`
          : `${temporary} cannot be written; check the folder.`,
      )
    })
    let lines = 0
    try {
      for await (const line of api.exportLines(session.reading)) {
        await file.write(`${JSON.stringify(line)}\n`)
        lines += 1
        if (lines % PROGRESS_LINES === 0) session.progress.update(`exported ${lines} lines`)
      }
      await file.sync()
      await file.close()
      await rename(temporary, path)
    } catch (error) {
      await file.close().catch(() => {})
      await rm(temporary, { force: true })
      throw error
    }
    session.progress.stop()
    await session.output.done({ file: path, lines }, `${path} has the export, ${lines} lines.`, path)
    return EXIT.done
  },
}

export const importCommand: CommandSpec = {
  name: 'import',
  summary: 'Import an export into an empty database, or the names of one pool into another pool',
  description:
    'All or nothing. Without --from, the database must be empty, and nothing is written to the zones until "poolctl zones resume". With --from and --to, the names of one pool become names of another.',
  arguments: [{ name: 'FILE', description: 'the export', suggest: 'files' }],
  flags: [
    { flags: '--from <pool>', description: 'import only the names of this pool' },
    { flags: '--to <pool>', description: 'the pool that they are moved to', suggest: 'pools' },
    dryRunFlag,
    yesFlag,
  ],
  examples: ['import installation.ndjson --dry-run', 'import installation.ndjson --from old.example --to pool.example'],
  operations: ['importInstallation'],
  async run(session, { args, flags }) {
    const path = String(args[0])
    const [from, to] = [toText(flags.from), toText(flags.to)].map(pool =>
      pool === undefined ? undefined : parsePool(pool),
    )
    if ((from === undefined) !== (to === undefined))
      throw new UsageError('--from and --to belong to each other; use both or neither.')
    const dryRun = flags.dryRun === true
    const info = await stat(path).catch(() => null)
    if (!info?.isFile()) throw new UsageError(`the export ${path} does not exist; check the path.`)
    if (info.size === 0) throw new UsageError(`the export ${path} is empty; export the installation again.`)
    const api = await session.api()
    if (!dryRun) await session.confirm(`Import ${path}?`, 'import', flags.yes === true)
    const body = Readable.toWeb(createReadStream(path)) as ReadableStream<Uint8Array>
    session.progress.update(dryRun ? `checking ${path}` : `importing ${path}`)
    const result = await session.write(options => api.importInstallation({ from, to, dryRun, body }, options))
    session.progress.stop()
    const rows = Object.entries(result.rows).map(([table, count]) => ({ table, count }))
    await session.output.report(result, rows, {
      key: 'rows',
      columns: [
        { header: 'TABLE', value: ({ table }) => table },
        { header: 'ROWS', value: ({ count }) => count },
      ],
      toName: ({ table }) => table,
      empty: 'The export has no rows.',
    })
    if (result.skippedCount > 0) {
      session.output.note(`Skipped ${toCount(result.skippedCount, 'name')}:`)
      for (const { subdomain, detail } of result.skipped) session.output.note(`  ${subdomain}: ${detail}`)
    }
    if (dryRun) session.output.note(NOTHING_CHANGED)
    else
      for (const zone of result.stoppedZones) {
        session.output.note(
          `Nothing is written to ${zone}. Decide with: poolctl zones resume ${zone} --dry-run --trust database`,
        )
      }
  },
}
