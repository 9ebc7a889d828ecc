import { type ChildProcess, spawn } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'

/**
 * Reads one line per event: "+PID" for a new process, "-PID" when it has exited, "q+PID" for a Postgres server. The input ends
 * with the host. A server of Postgres stops by SIGQUIT, so that it removes its shared memory and its child processes. What
 * remains after some seconds gets SIGKILL. $1 is the folder to remove.
 */
const SCRIPT = `
  folder=$1; plain=' '; servers=' '
  without() { case $1 in *" $2 "*) printf '%s' "\${1%% "$2" *} \${1#* "$2" }";; *) printf '%s' "$1";; esac; }
  while read -r line; do
    case $line in
      +*) plain="$plain\${line#+} ";;
      q+*) servers="$servers\${line#q+} ";;
      -*) plain=$(without "$plain" "\${line#-}"); servers=$(without "$servers" "\${line#-}");;
    esac
  done
  for pid in $plain; do kill -KILL "-$pid" "$pid"; done
  for pid in $servers; do kill -QUIT "$pid"; kill -CONT "$pid"; done
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    running=
    for pid in $plain $servers; do kill -0 "$pid" && running=1; done
    [ -n "$running" ] || break
    sleep 0.2
  done
  for pid in $servers; do kill -KILL "$pid"; done
  rm -rf "$folder"`

const isPostgres = ({ spawnargs }: ChildProcess): boolean => spawnargs.some(arg => /\/(?:postgres|initdb)$/.test(arg))

/**
 * A shell that outlives this process, however it ends, kills the processes that it has spawned and removes the folder. Call it
 * before anything else is spawned. Returns the pids that run.
 */
export const startReaper = (folder: string): ReadonlyMap<number, ChildProcess> => {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'testing-reaper', folder], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.stdin.on('error', () => {})
  shell.unref()
  const running = new Map<number, ChildProcess>()
  subscribe('child_process', message => {
    const { process: child } = message as { readonly process: ChildProcess }
    child.once('spawn', () => {
      const { pid } = child
      if (pid === undefined) return
      running.set(pid, child)
      shell.stdin.write(`${isPostgres(child) ? 'q' : ''}+${pid}\n`)
      child.once('exit', () => {
        running.delete(pid)
        shell.stdin.write(`-${pid}\n`)
      })
    })
  })
  return running
}
