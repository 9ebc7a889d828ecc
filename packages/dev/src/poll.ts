/** Calls `condition` until it returns true. Returns false after the timeout. */
export async function pollUntil(
  condition: () => boolean | Promise<boolean>,
  options: { intervalMs: number; timeoutMs: number },
): Promise<boolean> {
  const end = performance.now() + options.timeoutMs
  while (!(await condition())) {
    if (performance.now() > end) return false
    await new Promise(resolve => setTimeout(resolve, options.intervalMs))
  }
  return true
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
