const told = new Set<string>()

/**
 * Whether tests are skipped for want of a part of the system; `lack` says in a line what it is and how to install it, and
 * is told once, where everybody sees it. Where all parts must be there nothing is skipped: the tests run, and fail.
 */
export const isSkippedFor = (lack: string | undefined): boolean => {
  if (lack === undefined || process.env.REQUIRE_ALL_DEPS === '1') return false
  if (!told.has(lack)) process.stderr.write(`${lack}\n`)
  told.add(lack)
  return true
}
