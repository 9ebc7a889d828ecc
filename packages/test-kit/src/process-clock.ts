import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The wall clock of processes that are started with `env`. */
export interface ProcessClock extends Disposable {
  readonly env: Readonly<Record<string, string>>
  /** Sets the clock to `aheadMs` before or after the clock of this machine, immediately. */
  readonly setAhead: (aheadMs: number) => void
}

const SOURCE = join(import.meta.dirname, 'step-clock.c')

const hasCompiler = (): boolean => {
  try {
    execFileSync('cc', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Why the clock of a process cannot be set on this machine; undefined: it can. */
export const missingProcessClock: string | undefined =
  process.platform === 'linux' && hasCompiler()
    ? undefined
    : 'setting the clock of a process needs Linux and a C compiler (apt-get install gcc libc6-dev)'

export const createProcessClock = (): ProcessClock => {
  const directory = mkdtempSync(join(tmpdir(), 'process-clock-'))
  const library = join(directory, 'step-clock.so')
  const offset = join(directory, 'offset')
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, SOURCE])
  writeFileSync(offset, new BigInt64Array([0n]))
  const file = openSync(offset, 'r+')
  return {
    env: { LD_PRELOAD: library, CLOCK_OFFSET_FILE: offset },
    setAhead: aheadMs => void writeSync(file, new BigInt64Array([BigInt(aheadMs)]), 0, 8, 0),
    [Symbol.dispose]: () => {
      closeSync(file)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
