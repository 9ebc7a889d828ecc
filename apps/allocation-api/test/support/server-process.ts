import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './until.ts'

/** Where a system's server is installed; undefined: it is not. */
export const found = (program: string): string | undefined =>
  ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin'].map(folder => join(folder, program)).find(existsSync)

/**
 * Kills the server when standard input ends, which it also does when the tests die in whatever way. The shell gives up
 * its own output, so that the end of the output is the end of the server.
 */
const guard = '"$@" & server=$!; exec >&- 2>&-; read -r _; kill -KILL $server; wait $server'

export interface ServerProcess {
  readonly name: string
  /** Runs it in the foreground. */
  readonly command: readonly string[]
  readonly folder: string
  readonly isUp: () => Promise<boolean>
}

/** Starts a server and waits until it is up; returns what kills it. What it said stands in the error if it ends. */
export const startServerProcess = async (server: ServerProcess): Promise<() => Promise<void>> => {
  const { name, command, folder, isUp } = server
  const child = spawn('/bin/sh', ['-c', guard, 'sh', ...command], { cwd: folder })
  let said = ''
  let isOver = false
  const hear = (text: string) => {
    said += text
  }
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', hear)
  child.stderr.setEncoding('utf8').on('data', hear)
  child.stderr.on('end', () => {
    isOver = true
  })
  const kill = async () => {
    child.stdin.end()
    await exited
  }
  try {
    await until(`${name} is up`, async () => {
      if (isOver) throw new Error(`${name} ended:\n${said}`)
      return isUp()
    })
  } catch (error) {
    await kill()
    throw error
  }
  return kill
}
