import { execFile } from 'node:child_process'
import { findProgram } from '@pool/dev/server-process'

/** Longer than any program needs on a busy machine; waiting for a lost monitor would take minutes. */
const COMMAND_TIMEOUT_MS = 90_000

const names = ['ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin', 'ceph', 'ceph-authtool', 'monmaptool'] as const
export type CephProgram = (typeof names)[number]

/** A line with the missing programs and how to install them; undefined if all are installed. */
export const toSkipReason = (missing: readonly string[]): string | undefined =>
  missing.length === 0
    ? undefined
    : `without a Ceph object gateway (${missing.join(', ')}): apt-get install --no-install-recommends ceph-mon ceph-osd radosgw`

export const missingGateway: string | undefined = toSkipReason(names.filter(name => findProgram(name) === undefined))

export const findProgramPath = (name: CephProgram): string => {
  const path = findProgram(name)
  if (path === undefined) throw new Error(missingGateway)
  return path
}

export interface RunOptions {
  readonly env: NodeJS.ProcessEnv
  /** Kills the program. */
  readonly signal?: AbortSignal
}

/** Runs a program. An error has its output but never its arguments, which can contain a secret. */
export const runProgram = (program: CephProgram, args: readonly string[], options: RunOptions): Promise<string> =>
  new Promise((resolve, reject) => {
    const limits = { timeout: COMMAND_TIMEOUT_MS, killSignal: 'SIGKILL' } as const
    execFile(findProgramPath(program), args, { ...options, ...limits }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${program} failed (${error.signal ?? error.code}):\n${stderr}`))
    })
  })
