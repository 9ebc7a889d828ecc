import { spawn } from 'node:child_process'

/**
 * A shell that outlives us, in whatever way we end (package managers kill whole process groups), and then tells the
 * server to stop: first once its last client has gone, so that the API can drain, and after 20 s in any case.
 */
const script = `
  cat >/dev/null
  kill -TERM "$1" || exit
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    sleep 1
    kill -0 "$1" || exit
  done
  kill -INT "$1"`

/** Returns what calls it off, once the server has ended: its number may then become another process's. */
export function watchOver(serverPid: number): () => void {
  // The end of this pipe is the end of us; nothing is ever written to it.
  const dog = spawn('/bin/sh', ['-c', script, 'postgres-watchdog', String(serverPid)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  dog.on('error', () => {})
  dog.unref()
  return () => dog.kill('SIGKILL')
}
