/** Asks again every few milliseconds until the answer is yes (true) or the time is over (false). */
export async function until(
  answer: () => boolean | Promise<boolean>,
  limit: { everyMs: number; withinMs: number },
): Promise<boolean> {
  const end = performance.now() + limit.withinMs
  while (!(await answer())) {
    if (performance.now() > end) return false
    await new Promise(resolve => setTimeout(resolve, limit.everyMs))
  }
  return true
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it lives, and is somebody else's.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
