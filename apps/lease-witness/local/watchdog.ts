import { type ChildProcess, spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** Reads the number of each new process, an empty line when that one has ended, and then the end of us. */
const script = `
  while read -r line; do last=$line; done
  [ -z "$last" ] || kill -KILL "$last"`

/**
 * workerd does not notice that its parent was killed: it would go on to answer, beside the one of the next start, from the
 * same files. A shell that outlives us, in whatever way we end, ends it then. Whoever runs workerd does not say which
 * process that is, nor by which one it was replaced after a crash, so every child from now on counts as workerd.
 */
export const watchChildren = (onSpawn: (pid: number) => void): Disposable => {
  const dog = spawn('/bin/sh', ['-c', script, 'workerd-watchdog'], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // The check at the next start is left when there is no shell.
  dog.on('error', () => {})
  dog.stdin.on('error', () => {})
  dog.unref()

  const tell = (pid: number | '') => dog.stdin.write(`${pid}\n`)
  const watch = (message: unknown) => {
    const { process: child } = message as { readonly process: ChildProcess }
    child.once('spawn', () => {
      const { pid } = child
      if (pid === undefined) return
      tell(pid)
      onSpawn(pid)
    })
    child.once('exit', () => tell(''))
  }
  subscribe('child_process', watch)
  return {
    [Symbol.dispose]: () => {
      unsubscribe('child_process', watch)
      dog.stdin.end()
    },
  }
}
