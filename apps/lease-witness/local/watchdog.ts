import { type ChildProcess, spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** Reads one line per event: the pid of a new process, or an empty line when it has exited. The input ends with us. */
const SCRIPT = `
  while read -r line; do last=$line; done
  [ -z "$last" ] || kill -KILL "$last"`

/**
 * workerd does not notice that its parent was killed. It would keep responding, from the same files as the workerd of the
 * next start. A shell that survives us kills it then. Miniflare does not expose the pid of workerd or of its replacement
 * after a crash, so every child process from now on counts as workerd.
 */
export const watchChildren = (onSpawn: (pid: number) => void): Disposable => {
  const watchdog = spawn('/bin/sh', ['-c', SCRIPT, 'workerd-watchdog'], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // Without a shell, the check at the next start still prevents two authorities.
  watchdog.on('error', () => {})
  watchdog.stdin.on('error', () => {})
  watchdog.unref()

  const send = (pid: number | '') => watchdog.stdin.write(`${pid}\n`)
  const onChildProcess = (message: unknown) => {
    const { process: child } = message as { readonly process: ChildProcess }
    child.once('spawn', () => {
      const { pid } = child
      if (pid === undefined) return
      send(pid)
      onSpawn(pid)
    })
    child.once('exit', () => send(''))
  }
  subscribe('child_process', onChildProcess)
  return {
    [Symbol.dispose]: () => {
      unsubscribe('child_process', onChildProcess)
      watchdog.stdin.end()
    },
  }
}
