/**
 * Stops this process: calls `stop`, and lets the process end when nothing keeps its event loop alive. The exit code is 0 if
 * `stop` succeeds, otherwise 1. After `timeoutMs` (milliseconds, from the call) the process sends SIGKILL to itself.
 *
 * `process.exit` is no alternative, because it can hang: Node then waits for V8's compiler threads, and one of them may wait
 * for a garbage collection by the thread that called it (https://github.com/nodejs/node/issues/54918). At the end of the
 * event loop, Node disposes of the heap first.
 */
export const endProcess = async (
  process: NodeJS.Process,
  timeoutMs: number,
  stop: () => Promise<void>,
): Promise<void> => {
  const kill = () => {
    process.stderr.write(`stop: not finished within ${timeoutMs / 1_000} s\n`)
    process.kill(process.pid, 'SIGKILL')
  }
  setTimeout(kill, timeoutMs).unref()
  // An open IPC channel to the parent would keep the event loop alive.
  process.channel?.unref()
  process.exitCode = 1
  await stop()
  process.exitCode = 0
}
