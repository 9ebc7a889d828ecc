import { open } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { toFigure, toSpread } from './figures.ts'

/** The machine on which the figures were measured. */
export interface Machine {
  readonly date: string
  readonly cpu: string
  readonly cores: number
  readonly memoryBytes: number
  readonly os: string
  readonly node: string
  /** Null: it was not started. */
  readonly postgres: string | null
  readonly workerd: string
  /** The load average of the last minute before the run. */
  readonly loadBefore: number
  /** Milliseconds to write 8 KiB durably: a single commit cannot be faster. */
  readonly fsyncMs: number
}

/** The version that Miniflare runs. */
const { version: workerd }: { version: string } = createRequire(import.meta.resolve('miniflare'))(
  'workerd/package.json',
)

const FSYNC_SAMPLES = 30

const measureFsyncMs = async (folder: string): Promise<number> => {
  const file = await open(join(folder, 'fsync'), 'w')
  try {
    const times: number[] = []
    for (let sample = 0; sample < FSYNC_SAMPLES; sample += 1) {
      await file.write(Buffer.alloc(8_192, sample), 0, 8_192, sample * 8_192)
      const started = performance.now()
      await file.datasync()
      times.push(performance.now() - started)
    }
    return toSpread(times).median
  } finally {
    await file.close()
  }
}

export const describeMachine = async (postgres: string | null, dataFolder: string): Promise<Machine> => ({
  date: new Date().toISOString(),
  cpu: cpus()[0]?.model.trim() ?? 'unknown',
  cores: availableParallelism(),
  memoryBytes: totalmem(),
  os: `${type()} ${release()}`,
  node: process.version,
  postgres,
  workerd,
  loadBefore: loadavg()[0] ?? 0,
  fsyncMs: await measureFsyncMs(dataFolder),
})

export const machineText = (machine: Machine): string =>
  [
    `date      ${machine.date}`,
    `machine   ${machine.cpu}, ${machine.cores} cores, ${toFigure(machine.memoryBytes / 2 ** 30)} GiB; ${machine.os}`,
    `versions  Node ${machine.node}${machine.postgres ? `, Postgres ${machine.postgres} (fsync on)` : ''}, workerd ${machine.workerd}`,
    `before    load average ${machine.loadBefore.toFixed(2)}, fsync of 8 KiB ${toFigure(machine.fsyncMs)} ms`,
  ].join('\n')
