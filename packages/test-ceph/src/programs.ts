import { execFile } from 'node:child_process'
import { findProgram } from '@pool/dev-server/server-process'

/** Longer than any of them takes on a busy machine; one that waits for a monitor that is gone would wait for minutes. */
const WITHIN_MS = 30_000

const names = ['ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin', 'ceph', 'ceph-authtool', 'monmaptool'] as const
export type Program = (typeof names)[number]

/** Which programs are not installed, and how to install them, in a line; undefined: all are there. */
export const lackOf = (missing: readonly string[]): string | undefined =>
  missing.length === 0
    ? undefined
    : `without a Ceph object gateway (${missing.join(', ')}): apt-get install --no-install-recommends ceph-mon ceph-osd radosgw`

export const lacksGateway: string | undefined = lackOf(names.filter(name => findProgram(name) === undefined))

export const pathOf = (name: Program): string => {
  const path = findProgram(name)
  if (path === undefined) throw new Error(lacksGateway)
  return path
}

export interface RunOptions {
  readonly env: NodeJS.ProcessEnv
  /** Kills it. */
  readonly signal?: AbortSignal
}

/** Runs one to its end. An error says what the program said, never its arguments: a secret can be among them. */
export const run = (program: Program, args: readonly string[], options: RunOptions): Promise<string> =>
  new Promise((resolve, reject) => {
    const limits = { timeout: WITHIN_MS, killSignal: 'SIGKILL' } as const
    execFile(pathOf(program), args, { ...options, ...limits }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${program} failed (${error.signal ?? error.code}):\n${stderr}`))
    })
  })
