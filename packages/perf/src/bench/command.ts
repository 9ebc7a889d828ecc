const INTERRUPTED = 130

export const print = (text: string): void => void process.stdout.write(`${text}\n`)

/**
 * Runs a command that starts processes, and ends this one with the code that it comes to: 1 when it throws, 130 when it is
 * interrupted. The end of the run, however it comes, is one place: what was left to `cleanup` is stopped before.
 */
export const runToEnd = async (
  name: string,
  run: (cleanup: AsyncDisposableStack) => Promise<number>,
): Promise<void> => {
  const toEnd = async (): Promise<number> => {
    // First of all: a signal that nobody listens to ends us with nothing cleaned up.
    const { promise: interrupted, resolve } = Promise.withResolvers<number>()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(INTERRUPTED))
    await using cleanup = new AsyncDisposableStack()
    const failed = (error: unknown) => {
      process.stderr.write(`${name}: ${error instanceof Error ? error.stack : error}\n`)
      return 1
    }
    return await Promise.race([run(cleanup).catch(failed), interrupted])
  }
  const code = await toEnd()
  // Whoever was interrupted may still have timers and connections that nobody waits for.
  process.stdout.write('', () => process.exit(code))
}

/** A command line that cannot be understood. */
export const refuse = (name: string, detail: string): void => {
  process.stderr.write(`${name}: ${detail}\n`)
  process.exitCode = 2
}
